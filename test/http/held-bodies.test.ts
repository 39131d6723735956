import { connect } from 'node:net'
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

it('of one user are held up to a share, and others send theirs meanwhile', async () => {
  const bytes = 1024 * 1024
  const unfinished = () => {
    const answer = Promise.withResolvers<string>()
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
    socket.on('data', (chunk) => answer.resolve(chunk.toString().slice(9, 12)))
    socket.on('error', answer.reject)
    socket.write(
      `PUT /api/auth/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer test-viewer\r\nContent-Type: application/json\r\nContent-Length: ${bytes}\r\n\r\n`,
    )
    socket.write(Buffer.alloc(bytes - 1, ' '))
    return { answer: answer.promise, socket }
  }
  const calls = Array.from({ length: 9 }, unfinished)
  expect(await Promise.race(calls.map(({ answer }) => answer))).toBe('429')
  const other = await api.request('POST', '/api/projects', {
    as: 'owner',
    raw: raw(bytes),
    headers: JSON_BODY,
  })
  expect(other.status).toBe(422)
  for (const { socket } of calls) socket.destroy()
})
