import { request } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

let api: TestApi
let user: { email: string; password: string }
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
  const { link } = (
    await api.as('admin').post('/api/team/members', { email: 'ada@example.com', role: 'admin' })
  ).body.data
  user = { email: 'ada@example.com', password: 'violet harbour eleven kites' }
  await api.request('POST', '/api/auth/invitations/accept', {
    body: { token: link.split('#')[1], name: 'Ada', password: user.password },
  })
  // Whatever an administrator may type by mistake: somebody else's name, one that leads nowhere, one of this
  // machine.
  expect(
    (
      await api.as('admin').put('/api/settings/domain', {
        dashboard_domain: 'not-ours.example.com',
        base_domain: 'nor-this.example.com',
      })
    ).status,
  ).toBe(200)
})
afterAll(() => api.close())
// Logins are limited per minute.
beforeEach(() => api.fakes.clock.advance(61_000))

/** Names and addresses under which a browser may have reached the plain port. */
const HOSTS = [
  '203.0.113.7:9000',
  '[2001:db8::7]:9000',
  'localhost:9000',
  'server.lan:9000',
  'not-ours.example.com:9000',
  'anything.example.org:9000',
]

describe('a wrong dashboard domain locks nobody out of the plain port', () => {
  it.each(HOSTS)(
    'http://%s: the administrator logs in, and takes the setting back, with the cookie of a browser',
    async (host) => {
      const origin = `http://${host}`
      const browser = { host, origin, 'sec-fetch-site': 'same-origin' }
      const login = await send('POST', '/api/auth/login', browser, user)
      expect(login.status).toBe(200)
      const cookie = login.headers['set-cookie']![0]!
      // A cookie that is marked Secure would never come back over plain HTTP.
      expect(cookie).not.toMatch(/;\s*secure/i)
      const session = { ...browser, cookie: cookie.split(';')[0]! }
      const { csrf_token } = JSON.parse((await send('GET', '/api/auth/csrf-token', session)).text).data
      const changed = await send(
        'PUT',
        '/api/settings/domain',
        { ...session, 'x-csrf-token': csrf_token },
        { dashboard_domain: 'still-wrong.example.com' },
      )
      expect([changed.status, changed.text]).toEqual([200, expect.stringContaining('still-wrong')])
      expect(changed.headers['strict-transport-security']).toBeUndefined()
      expect((await send('GET', '/api/openapi.json', { host })).status).toBeLessThan(402)
    },
  )
  it('the WebSocket opens for the page of any of these addresses, and for no other site', async () => {
    const { identity } = api.services
    const login = await send('POST', '/api/auth/login', { host: HOSTS[0]! }, user)
    const session = /session=([^;]+)/.exec(login.headers['set-cookie']![0]!)![1]!
    const upgrade = (host: string, origin: string) =>
      Promise.resolve()
        .then(() =>
          identity.authenticateUpgrade(
            { session, host, origin, mutating: false },
            { address: '203.0.113.50', id: 'req_x' },
          ),
        )
        .then(
          (actor) => actor.email,
          (error: { code: string }) => error.code,
        )
    for (const host of HOSTS)
      expect([host, await upgrade(host, `http://${host}`)]).toEqual([host, user.email])
    expect(await upgrade('localhost:9000', 'https://still-wrong.example.com')).toBe(user.email)
    expect(await upgrade('localhost:9000', 'https://evil.example.com')).toBe('CSRF_INVALID')
  })
})

/** A request whose Host header is the caller's choice, which `fetch` does not allow. */
async function send(method: string, path: string, headers: Record<string, string>, body?: object) {
  const text = body === undefined ? '' : JSON.stringify(body)
  const { port } = new URL(api.url)
  return new Promise<{
    status: number
    headers: Record<string, string[] | string | undefined> & { 'set-cookie'?: string[] }
    text: string
  }>((resolve, reject) => {
    request(
      {
        host: '127.0.0.1',
        port,
        method,
        path,
        agent: false,
        headers: {
          ...headers,
          ...(body ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) } : {}),
        },
      },
      (response) => {
        let answer = ''
        response
          .setEncoding('utf8')
          .on('data', (chunk: string) => {
            answer += chunk
          })
          .on('end', () =>
            resolve({
              status: response.statusCode!,
              headers: response.headers as never,
              text: answer,
            }),
          )
      },
    )
      .on('error', reject)
      .end(text)
  })
}
