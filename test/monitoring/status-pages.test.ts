import { afterEach, beforeEach, expect, it } from 'vitest'
import { createStatusPages } from '#server/monitoring/status-pages'
import { createTestKernel, type TestKernel } from '#test/support/kernel'

const PAGES = 200
const CHECKS = Array.from({ length: 100 }, (_, at) => ({
  ...{ id: `upt_${at}`, name: `Part ${at}`, status: 'up', availability_30d_percent: 100, days: [] },
}))
let kernel: TestKernel
let made: number
let pages: ReturnType<typeof createStatusPages>
beforeEach(() => {
  kernel = createTestKernel()
  kernel.db.raw.pragma('foreign_keys = OFF')
  made = 0
  pages = createStatusPages({
    ...kernel,
    shown: () => {
      made += 1
      return CHECKS as never
    },
    projectName: () => 'Shop',
    publicUrl: () => 'https://status.example.com',
  })
})
afterEach(() => kernel.dispose())

it('status pages of many projects, asked for in turn by whoever likes, are made at a bearable pace', () => {
  const slugs = Array.from({ length: PAGES }, (_, at) => pages.pathOf(`prj_${at}`).slice('/status/'.length))
  const answered = () =>
    slugs.filter((slug) => {
      try {
        return pages.html(slug)
      } catch (error) {
        expect(error).toMatchObject({ code: 'UNAVAILABLE', retry_after_s: 5 })
        return false
      }
    })
  const first = answered()
  expect([first.length, made]).toEqual([30, 30])
  // What is there goes on being served, though it is older than it would be else.
  kernel.clock.advance(10_001)
  expect(pages.html(slugs[0]!)).toBeDefined()
  made = 0
  expect(answered().slice(0, 30)).toEqual(first)
  expect(made).toBeLessThanOrEqual(101)
})

it('a page that is gone is not shown once more because others are asked for too often', () => {
  const slugs = Array.from({ length: PAGES }, (_, at) => pages.pathOf(`prj_${at}`).slice('/status/'.length))
  for (const slug of slugs.slice(0, 30)) expect(pages.html(slug)).toBeDefined()
  expect(() => pages.html(slugs[30]!)).toThrow('Too many status pages')
  kernel.clock.advance(10_001)
  for (const slug of slugs.slice(31, 61)) pages.html(slug)
  expect(() => pages.html(slugs[62]!)).toThrow('Too many status pages')
  kernel.db.raw.prepare('DELETE FROM status_pages WHERE slug = ?').run(slugs[0])
  expect(pages.html(slugs[0]!)).toBeUndefined()
})
