import { afterAll, beforeAll, expect, it } from 'vitest'
import { MAX_PUBLIC_BODY_BYTES } from '#server/http/input'
import { createTestApi, type TestApi } from '#test/support/api'

let api: TestApi
beforeAll(async () => {
  api = await createTestApi()
})
afterAll(() => api.close())

const JSON_BODY = { 'content-type': 'application/json' }
const raw = (bytes: number) => {
  const text = JSON.stringify({ name: '' })
  return text.replace('""', `"${'x'.repeat(bytes - text.length)}"`)
}

it.each(['/api/auth/login', '/api/auth/invitations/accept', '/api/auth/password/reset'])(
  'of callers without an account %s takes short bodies only: each of their connections is held in memory',
  async (path) => {
    const send = async (bytes: number) =>
      (await api.request('POST', path, { raw: raw(bytes), headers: JSON_BODY })).status
    expect([await send(MAX_PUBLIC_BODY_BYTES), await send(MAX_PUBLIC_BODY_BYTES + 1)]).toEqual([422, 413])
  },
)
it('takes longer ones of people who are known', async () => {
  const answer = await api.request('POST', '/api/projects', {
    as: 'admin',
    raw: raw(MAX_PUBLIC_BODY_BYTES + 1),
    headers: JSON_BODY,
  })
  expect(answer.status).toBe(422)
})
