import { expect, it } from 'vitest'
import { createTestApi } from '#test/support/api'

it('who may only read does not fill the server with changes of their own name, and others go on', async () => {
  const api = await createTestApi()
  const rename = (as: 'reader' | 'viewer', n: number) => api.as(as).put('/api/auth/me', { name: `name ${n}` })
  const statuses: number[] = []
  for (let n = 0; n < 1_010; n += 1) statuses.push((await rename('reader', n)).status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(1_000)
  const refused = await rename('reader', 0)
  expect([refused.status, refused.body.error.code]).toEqual([429, 'RATE_LIMITED'])
  expect(refused.headers.get('retry-after')).toBe('5')
  expect((await rename('viewer', 0)).status).toBe(200)
  expect((await api.as('reader').get('/api/auth/me')).status).toBe(200)
  api.fakes.clock.advance(1_000)
  expect((await rename('reader', 1)).status).toBe(200)
  await api.close()
})
it('changes of what is in projects count for a user, with whatever they prove who they are', async () => {
  const api = await createTestApi()
  const make = (as: 'owner' | 'developer' | 'admin', n: number) =>
    api.as(as).post('/api/volumes', { name: `${as}-${n}` })
  for (let n = 0; n < 1_000; n += 1) await make('developer', n)
  expect((await make('developer', 1_000)).status).toBe(429)
  expect((await make('owner', 0)).status).toBe(201)
  // What was made can be taken away, and what concerns the account be done.
  expect((await api.as('developer').put('/api/auth/me', { name: 'Somebody' })).status).toBe(200)
  await api.close()
})
