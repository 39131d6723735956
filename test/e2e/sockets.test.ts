import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  CAST_ENVIRONMENT,
  enter,
  join,
  joinAll,
  newPeer,
  type Part,
  type Person,
  send,
} from '#test/support/cast'
import { ADMIN, eventually, type Portreeve, startPortreeve } from '#test/support/portreeve'
import { listen, type Listener, speak, upgrade } from '#test/support/socket'

/** Source: security.md T9 and T19. */
const AFTER_REVOCATION_MS = 5000
const IDLE_SOCKETS = 1000
const PER_USER = 50
const IDLE_BYTES = 96 * 1024 * 1024
let portreeve: Portreeve
let port: number
let cast: Record<Part, Person>
let admin: Person
let app: { id: string; project_id: string }
beforeAll(async () => {
  portreeve = await startPortreeve({ env: CAST_ENVIRONMENT })
  port = Number(new URL(portreeve.url).port)
  cast = await joinAll(portreeve)
  admin = await enter(portreeve, ADMIN.email, ADMIN.password)
  app = (await portreeve.call('POST', '/api/apps', { name: 'shop', source: 'upload' })).body.data
  expect(app.id).toMatch(/^app_/)
})
afterAll(() => portreeve?.dispose())

const open = (headers: Record<string, string>): Promise<Listener> => listen(portreeve.url, headers)
/** Makes the app tell something. */
const change = async (n: number) =>
  expect((await portreeve.call('PUT', `/api/apps/${app.id}`, { soak_seconds: n })).status).toBe(200)
/** The code that a connection ends with, which it must within five seconds. */
const ending = ({ closed }: Listener) =>
  Promise.race([
    closed,
    new Promise<string>((resolve) =>
      setTimeout(() => resolve('still open after 5 s'), AFTER_REVOCATION_MS).unref(),
    ),
  ])
const rss = () =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${portreeve.pid()}/status`, 'utf8'))![1]) * 1024

/** What came back to clients that send too slowly; the other tests run while their time passes. */
let slow: { headers: Promise<string[]>; silent: Promise<string[]>; bodies: Promise<string[]> }
describe('T9: clients that send too slowly', () => {
  it('hold up nobody', async () => {
    const connections = (count: number, bytes: string) =>
      Promise.all(Array.from({ length: count }, () => speak(port, bytes)))
    slow = {
      headers: connections(200, 'GET /api/apps HTTP/1.1\r\nHost: x\r\nX-Slow: '),
      silent: connections(200, ''),
      bodies: connections(
        20,
        'POST /api/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
      ),
    }
    for (let n = 0; n < 20; n += 1)
      expect((await send(portreeve, 'GET', '/api/apps', undefined, admin.bearer)).status).toBe(200)
  })
})

describe('T9: who may open the WebSocket of the built server, and what they hear', () => {
  it.each([
    ['nobody', () => ({}), 401, 'UNAUTHORIZED'],
    [
      'a forged token',
      () => ({ authorization: `Bearer ${admin.token.slice(0, -4)}AAAA` }),
      401,
      'UNAUTHORIZED',
    ],
    [
      'a cookie from another site',
      () => ({ cookie: `session=${admin.cookie}`, origin: 'https://evil.example' }),
      403,
      'CSRF_INVALID',
    ],
    ['a cookie without an origin', () => ({ cookie: `session=${admin.cookie}` }), 403, 'CSRF_INVALID'],
  ])('is refused before the upgrade to %s', async (_who, headers, status, code) => {
    const answer = await upgrade(port, '/api/ws', headers() as unknown as Record<string, string>)
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(answer).toContain(`"code":"${code}"`)
  })
  it('tells nothing of a foreign project: its channels answer like unknown ones, and no frame of it arrives', async () => {
    const outsider = await open(cast.outsider.bearer)
    const member = await open(cast.viewer.bearer)
    const foreign = [`apps/${app.id}`, `apps/${app.id}/logs`, `projects/${app.project_id}`]
    const unknown = [
      'apps/app_00000000000000000000',
      'apps/app_00000000000000000000/logs',
      'projects/prj_00000000000000000000',
    ]
    for (const channel of [...foreign, ...unknown])
      outsider.say({ type: 'subscribe', channel, after: channel.endsWith('logs') ? undefined : 0 })
    member.say({ type: 'subscribe', channel: foreign[0] })
    await member.until(({ type }) => type === 'subscribed')
    await change(7)
    await member.until(({ type }) => type === 'app.updated')
    await outsider.until(({ channel }) => channel === unknown.at(-1))
    expect(outsider.heard.map(({ type, channel, data }) => [type, channel, data])).toEqual(
      [...foreign, ...unknown].map((channel) => [
        'error',
        channel,
        { code: 'NOT_FOUND', message: expect.stringMatching(/^There is no such (app|project)\.$/) },
      ]),
    )
    outsider.socket.close()
    member.socket.close()
  })
  it('runs no command and opens no terminal for a role that may not', async () => {
    expect(
      (await send(portreeve, 'POST', `/api/apps/${app.id}/exec`, { command: ['id'] }, cast.viewer.bearer))
        .status,
    ).toBe(403)
    expect(
      (await send(portreeve, 'POST', `/api/apps/${app.id}/exec`, { command: ['id'] }, cast.outsider.bearer))
        .status,
    ).toBe(404)
    const viewer = await open(cast.viewer.bearer)
    for (const [kind, code] of [
      ['exec', 'NOT_FOUND'],
      ['terminal', 'FORBIDDEN'],
    ]) {
      viewer.say({ type: 'subscribe', channel: `apps/${app.id}/${kind}` })
      const refusal = await viewer.until(({ channel }) => channel === `apps/${app.id}/${kind}`)
      expect(refusal.data.code).toBe(code)
    }
    viewer.socket.close()
  })
})

describe('T19: a WebSocket ends within five seconds of the right that opened it', () => {
  it('when the password is changed, but for the session that changed it', async () => {
    const person = await join(portreeve, 'changer', 'viewer')
    const other = await enter(portreeve, person.email, person.password)
    const [mine, theirs] = [await open(person.bearer), await open(other.bearer)]
    expect(
      (
        await send(
          portreeve,
          'PUT',
          '/api/auth/password',
          { current_password: person.password, new_password: 'another violet harbour' },
          { ...person.bearer, ...newPeer() },
        )
      ).status,
    ).toBe(200)
    expect(await ending(theirs)).toBe(4401)
    mine.say({ type: 'ping' })
    await mine.until(({ type }) => type === 'pong')
    mine.socket.close()
  })
  it.each(['revoked key', 'deleted user', 'disabled user', 'ended session', 'logout', 'administrator'])(
    '%s',
    async (what) => {
      const person = await join(portreeve, what.replace(' ', '-'), 'viewer')
      const made = await send(portreeve, 'POST', '/api/auth/api-keys', { name: 'socket' }, person.bearer)
      const listener = await open(
        what === 'revoked key' ? { 'x-api-key': made.body.data.key } : person.bearer,
      )
      listener.say({ type: 'subscribe', channel: `apps/${app.id}` })
      await listener.until(({ type }) => type === 'subscribed')
      const [session] = (await send(portreeve, 'GET', '/api/auth/sessions', undefined, person.bearer)).body
        .data
      const end = {
        'revoked key': () =>
          send(portreeve, 'DELETE', `/api/auth/api-keys/${made.body.data.id}`, undefined, person.bearer),
        'deleted user': () => portreeve.call('DELETE', `/api/team/members/${person.id}`),
        'disabled user': () =>
          portreeve.call('PUT', `/api/team/members/${person.id}`, { status: 'disabled' }),
        'ended session': () =>
          send(portreeve, 'DELETE', `/api/auth/sessions/${session.id}`, undefined, person.browser),
        administrator: () => portreeve.call('PUT', `/api/team/members/${person.id}`, { end_sessions: true }),
        logout: () => send(portreeve, 'POST', '/api/auth/logout', undefined, person.bearer),
      }[what]!
      expect((await end()).status).toBe(200)
      expect(await ending(listener)).toBe(4401)
      await change(9)
      expect(listener.heard.filter(({ type }) => type === 'app.updated')).toEqual([])
    },
  )
  it('and a channel ends when its listener leaves the project', async () => {
    const person = await join(portreeve, 'leaver', 'developer')
    const listener = await open(person.bearer)
    listener.say({ type: 'subscribe', channel: `apps/${app.id}` })
    await listener.until(({ type }) => type === 'subscribed')
    expect(
      (await portreeve.call('DELETE', `/api/projects/${app.project_id}/members/${person.id}`)).status,
    ).toBe(200)
    expect((await listener.until(({ type }) => type === 'error', AFTER_REVOCATION_MS)).data.code).toBe(
      'NOT_FOUND',
    )
    await change(11)
    listener.say({ type: 'ping' })
    await listener.until(({ type }) => type === 'pong')
    expect(listener.heard.map(({ type }) => type)).toEqual(['subscribed', 'error', 'pong'])
    listener.socket.close()
  })
})

describe('T9: what a client can do to the built server', () => {
  it('a message of 16 MiB ends its connection', async () => {
    const { socket, closed } = await open(admin.bearer)
    socket.send('x'.repeat(16 * 1024 * 1024))
    expect([1006, 1009]).toContain(await closed)
    expect((await send(portreeve, 'GET', '/healthz')).status).toBe(200)
  })
  it('ten thousand messages at once end its connection after the three hundred that it may send', async () => {
    const listener = await open(admin.bearer)
    for (let n = 0; n < 10_000; n += 1) listener.say({ type: 'ping' })
    expect(await listener.closed).toBe(1008)
    expect(listener.heard.filter(({ type }) => type === 'pong').length).toBeLessThanOrEqual(300)
  })
  it(`${IDLE_SOCKETS} idle connections cost a bounded amount of memory, and one user may have ${PER_USER} of them`, async () => {
    const crowd = await Promise.all(
      Array.from({ length: IDLE_SOCKETS / PER_USER }, (_, n) => join(portreeve, `crowd-${n}`, 'viewer')),
    )
    const before = rss()
    const listeners: Listener[] = []
    for (const person of crowd)
      listeners.push(...(await Promise.all(Array.from({ length: PER_USER }, () => open(person.bearer)))))
    expect(listeners).toHaveLength(IDLE_SOCKETS)
    expect(await upgrade(port, '/api/ws', crowd[0]!.bearer)).toMatch(
      /^HTTP\/1\.1 429 .*"code":"RATE_LIMITED"/s,
    )
    listeners[0]!.say({ type: 'ping' })
    await listeners[0]!.until(({ type }) => type === 'pong')
    expect(rss() - before).toBeLessThan(IDLE_BYTES)
    for (const { socket } of listeners) socket.close()
    await Promise.all(listeners.map(({ closed }) => closed))
  })
  it('clients that send their headers or a body too slowly are sent away', async () => {
    for (const text of await slow.headers) expect(text).toMatch(/^HTTP\/1\.1 408 /)
    await slow.silent
    for (const text of await slow.bodies)
      expect(text).toMatch(/^HTTP\/1\.1 408 .*connection: close.*"code":"REQUEST_TIMEOUT"/is)
  })
  it('hears 1001 when the server ends, so that it knows to connect again', async () => {
    const listener = await open(admin.bearer)
    const browser = await open(admin.browser)
    expect(await portreeve.stop()).toBe(0)
    expect([await listener.closed, await browser.closed]).toEqual([1001, 1001])
    await portreeve.start()
    await eventually(
      'The WebSocket being open again',
      () =>
        open(admin.bearer).then(({ socket }) => {
          socket.close()
          return true
        }),
      10_000,
    )
  })
})
