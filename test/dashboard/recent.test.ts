import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { type Me, me } from '@/api/session'
import { forgetPages, recentPages, rememberPage } from '@/shell/recent'

const enter = (id: string) => {
  me.value = { id } as Me
}
const stored = new Map<string, string>()
beforeEach(() => {
  stored.clear()
  vi.stubGlobal('localStorage', {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, text: string) => void stored.set(key, text),
    removeItem: (key: string) => void stored.delete(key),
  })
  enter('usr_1')
  rememberPage({ label: 'shop', to: '/apps/app_1' })
})
afterEach(() => {
  me.value = undefined
  vi.unstubAllGlobals()
})

it('pages that somebody looked at are shown to nobody else in this browser', () => {
  expect(recentPages().map(({ label }) => label)).toEqual(['shop'])
  enter('usr_2')
  expect(recentPages()).toEqual([])
  rememberPage({ label: 'blog', to: '/apps/app_2' })
  expect(recentPages().map(({ label }) => label)).toEqual(['blog'])
})
it('nothing of them stays after a logout', () => {
  forgetPages()
  expect([stored.size, recentPages()]).toEqual([0, []])
})
