import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createUnlocked } from '#server/http/unlocked'
import { by, startTinyApi, type TinyApi } from './tiny-api.ts'

let api: TinyApi
beforeAll(async () => {
  api = await startTinyApi()
})
afterAll(() => api.close())
beforeEach(() => {
  api.services.handled.length = 0
})

it('a change waits while another program holds the database, and what is read does not', async () => {
  let open = () => {}
  const locked = new Promise<void>((resolve) => (open = resolve))
  let asked = () => {}
  const is_asked = new Promise<void>((resolve) => (asked = resolve))
  api.services.http.unlocked = () => {
    asked()
    return locked
  }
  const change = api.send('PUT', '/api/things/thing_1', { body: { name: 'x' }, headers: by('admin') })
  await is_asked
  expect((await api.send('GET', '/api/things', { headers: by('admin') })).status).toBe(200)
  expect(api.services.handled).toEqual([])
  open()
  expect((await change).status).toBe(200)
  expect(api.services.handled).toHaveLength(1)
})

it('all who wait for a lock look at it together, and go on once it is gone', async () => {
  let looks = 0
  const unlocked = createUnlocked({ isLocked: () => (looks += 1) < 3 })
  await Promise.all([unlocked(), unlocked(), unlocked()])
  expect(looks).toBe(3)
  expect(unlocked()).toBeUndefined()
})

it('a lock that lasts is waited for no longer than there is patience, and then nobody tries to write', async () => {
  let looks = 0
  const unlocked = createUnlocked({ isLocked: () => (looks += 1) > 0 }, 100)
  const told = await Promise.allSettled([unlocked(), unlocked()])
  expect(told).toEqual(
    told.map(() => ({ status: 'rejected', reason: expect.objectContaining({ code: 'UNAVAILABLE' }) })),
  )
  expect(looks).toBe(3)
  api.services.http.unlocked = unlocked
  const change = await api.send('PUT', '/api/things/thing_1', { body: { name: 'x' }, headers: by('admin') })
  expect([change.status, change.headers.get('retry-after'), api.services.handled]).toEqual([503, '5', []])
})
