import { describe, expect, it } from 'vitest'
import { everyPage } from '@/api/every-page'
import { pageOf } from '@/lib/page-of'

const rows = (count: number) => Array.from({ length: count }, (_, n) => n)

describe('a page of rows that are known', () => {
  it('has 50 of them at most, and the last one what is left', () => {
    expect(pageOf(undefined, 1)).toBeUndefined()
    expect(pageOf([], 1)).toEqual({ data: [], total: 0, pages: 1 })
    expect(pageOf(rows(120), 1)).toEqual({ data: rows(50), total: 120, pages: 3 })
    expect(pageOf(rows(120), 3)).toMatchObject({ data: rows(120).slice(100) })
    expect(pageOf(rows(120), 4)).toMatchObject({ data: [] })
  })
  it('is there as soon as its own rows are, and never with a part of them', () => {
    expect(pageOf(rows(100), 2, 1000)).toEqual({ data: rows(100).slice(50), total: 1000, pages: 20 })
    expect([pageOf(rows(100), 3, 1000), pageOf(rows(70), 2, 1000)]).toEqual([undefined, undefined])
    expect(pageOf(undefined, 1, undefined)).toBeUndefined()
  })
})

describe('a list of several answers', () => {
  it('hands the first one on before the others are there, and asks for those together', async () => {
    const asked: number[] = []
    const waiting: (() => void)[] = []
    const ask = async (page: number) => {
      asked.push(page)
      if (page > 1) await new Promise<void>((done) => waiting.push(done))
      return { data: { data: [page * 10, page * 10 + 1], total: 6, pages: 3 } }
    }
    const first: unknown[] = []
    let all: number[] | undefined
    const done = everyPage(ask, (page) => first.push(page)).then((found) => (all = found))
    await expect.poll(() => waiting.length).toBe(2)
    expect([first, all, asked]).toEqual([[{ data: [10, 11], total: 6, pages: 3 }], undefined, [1, 2, 3]])
    for (const go of waiting.reverse()) go()
    await done
    expect(all).toEqual([10, 11, 20, 21, 30, 31])
  })
})
