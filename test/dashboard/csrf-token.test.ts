import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { whileTimePasses } from '#test/support/passing-time'

beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout'] }))
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

it('the token of a session is asked for again after the server was away, and then kept', async () => {
  // A page that was just loaded: what another test asked for is not known yet.
  vi.resetModules()
  const { csrfToken } = await import('@/api/client')
  let is_away = true
  const asked: string[] = []
  vi.stubGlobal('fetch', async (url: string) => {
    asked.push(url)
    if (is_away) throw new TypeError('Failed to fetch')
    return Response.json({ data: { csrf_token: 'one' } })
  })
  await expect(whileTimePasses(csrfToken())).rejects.toThrow('Failed to fetch')
  const before = asked.length
  is_away = false
  expect([await csrfToken(), await csrfToken()]).toEqual(['one', 'one'])
  expect(asked).toHaveLength(before + 1)
})
