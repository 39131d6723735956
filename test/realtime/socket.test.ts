import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import wsAdapter from 'crossws/adapters/node'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ApiError } from '#server/kernel/errors'
import { createSocketOptions } from '#server/http/socket-options'
import { createWebSocketHooks } from '#server/http/websocket'
import { createTestApi, type TestApi } from '#test/support/api'

const PASSWORD = 'a long enough password'
let api: TestApi
let server: Server
let port: number
let token: string
let cookie: string
let app_id: string
/** What happens between the answer to an upgrade and its opening. */
let meanwhile: () => void = () => undefined
beforeAll(async () => {
  api = await createTestApi({ jobs: false, environment: { PORTREEVE_ADMIN_PASSWORD: PASSWORD } })
  const { services } = api
  app_id = (
    await api
      .as('admin')
      .post('/api/apps', { name: 'shop', git_url: 'https://git.example.com/team/shop.git' })
  ).body.data.id
  api.kernel.db.sql('DELETE FROM users').run()
  await services.identity.ensureAdministrator()
  const login = await api.request('POST', '/api/auth/login', {
    body: { email: 'admin@localhost', password: PASSWORD },
  })
  token = login.body.data.token
  cookie = login.headers.get('set-cookie')!.split(';')[0]!
  const hooks = createWebSocketHooks(() => ({
    realtime: services.realtime,
    http: services.http,
    async authenticate(credentials, facts) {
      const actor = await services.identity.authenticateUpgrade(credentials, facts)
      meanwhile()
      return actor
    },
  }))
  const { handleUpgrade } = wsAdapter({
    ...(createSocketOptions() as object),
    resolve: () => hooks,
  })
  server = createServer()
    .on('upgrade', (request, socket, head) => void handleUpgrade(request, socket, head))
    .listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  port = (server.address() as AddressInfo).port
})
afterAll(async () => {
  api.services.realtime.stop()
  server.closeAllConnections()
  server.close()
  await api.close()
})

/** The first answer to an upgrade, byte for byte; with what is sent on in one piece, all up to a farewell. */
const upgrade = (path: string, headers: Record<string, string> = {}, more?: Buffer) =>
  new Promise<string>((resolve) => {
    let text = ''
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(
        [
          `GET ${path} HTTP/1.1`,
          `Host: 127.0.0.1:${port}`,
          'Connection: Upgrade',
          'Upgrade: websocket',
          'Sec-WebSocket-Version: 13',
          'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
          ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
          '',
          more?.toString('latin1') ?? '',
        ].join('\r\n'),
        'latin1',
      ),
    )
    socket
      .setEncoding('latin1')
      .on('error', () => undefined)
      .on('close', () => resolve(text))
      .on('data', (part: string) => {
        text += part
        if (text.startsWith('HTTP/1.1 101') && text.includes('\r\n\r\n') && !more) socket.destroy()
        if (text.includes('Too many')) socket.destroy()
      })
  })
const statusOf = (answer: string) => Number(answer.split(' ')[1])

/** A client that keeps what it hears. */
async function open(headers: Record<string, string>, path = '/api/ws') {
  const heard: { type: string; channel: string | null; cursor: string | null; data: any }[] = []
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers } as unknown as string[])
  const closed = new Promise<{ code: number }>((resolve) =>
    socket.addEventListener('close', (event) => resolve({ code: event.code })),
  )
  socket.addEventListener('message', (event) => heard.push(JSON.parse(String(event.data))))
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('error', reject)
  })
  return {
    socket,
    heard,
    closed,
    say: (message: unknown) => socket.send(JSON.stringify(message)),
    until: (type: string) => expect.poll(() => heard.map((one) => one.type), { interval: 5 }).toContain(type),
  }
}

describe('opening the WebSocket', () => {
  it.each([
    ['nobody', {}],
    ['a forged token', { authorization: 'Bearer a.b.c' }],
    ['an unknown key', { 'x-api-key': `ptr_${'0'.repeat(20)}_${'0'.repeat(40)}` }],
    ['an unknown cookie', { cookie: 'session=nothing', origin: 'http://127.0.0.1' }],
  ])('is refused before the upgrade to %s', async (_who, headers) => {
    const answer = await upgrade('/api/ws', headers as Record<string, string>)
    expect([401, 403]).toContain(statusOf(answer))
    expect(answer).toContain('"error":{"code":')
  })
  it('is refused with the headers of every other answer: nothing keeps it, and it says when to come again', async () => {
    meanwhile = () => {
      throw new ApiError('RATE_LIMITED', 'Too many connections are open.', undefined, 10)
    }
    const answer = await upgrade('/api/ws', { authorization: `Bearer ${token}` }).finally(
      () => (meanwhile = () => undefined),
    )
    expect(statusOf(answer)).toBe(429)
    const refusals = [answer, await upgrade('/api/ws'), await upgrade('/api/nothing')]
    for (const one of refusals) {
      expect(one).toMatch(/^X-Request-Id: req_\w+\r$/m)
      expect(one).toMatch(/^Cache-Control: no-store\r$/m)
      expect(one).toMatch(/^X-Content-Type-Options: nosniff\r$/m)
    }
    expect(refusals[0]).toMatch(/^Retry-After: 10\r$/m)
    expect(refusals[1]).toMatch(/^WWW-Authenticate: Bearer\r$/m)
  })
  it('says so while Portreeve starts', async () => {
    const refused = await createWebSocketHooks(() => undefined).upgrade!({} as never)
    expect(refused).toMatchObject({ status: 503 })
    expect([...(refused as Response).headers]).toContainEqual(['Retry-After', '1'])
  })
  it('is refused to a cookie that another site sends, or that comes without an origin', async () => {
    const foreign = await upgrade('/api/ws', { cookie, origin: 'https://evil.example' })
    expect([statusOf(foreign), foreign.includes('"code":"CSRF_INVALID"')]).toEqual([403, true])
    expect(statusOf(await upgrade('/api/ws', { cookie }))).toBe(403)
    expect(statusOf(await upgrade('/api/ws', { cookie, origin: `http://127.0.0.1:${port}` }))).toBe(101)
  })
  it.each(['/', '/api', '/api/ws/x', '/api/wsx', '/api/nothing', '/hello', '//api/ws'])(
    'is refused on any other path: %s',
    async (path) => {
      expect(statusOf(await upgrade(path, { authorization: `Bearer ${token}` }))).toBe(404)
    },
  )
  it('waits for the turn of its user: fifty that are opened at once keep nobody waiting', async () => {
    const { http } = api.services
    const { turn } = http
    let come: (() => void) | undefined
    http.turn = (owner) => {
      expect(owner).toMatch(/^usr_/)
      return new Promise((resolve) => (come = resolve))
    }
    let is_answered = false
    const answer = upgrade('/api/ws', { authorization: `Bearer ${token}` }).finally(
      () => (is_answered = true),
    )
    await expect.poll(() => come).toBeDefined()
    expect(is_answered).toBe(false)
    come!()
    expect(statusOf(await answer)).toBe(101)
    http.turn = turn
  })
  it('accepts a bearer token', async () => {
    expect(statusOf(await upgrade('/api/ws', { authorization: `Bearer ${token}` }))).toBe(101)
  })
  it('is closed when the session ended in the very moment of the answer', async () => {
    const login = await api.request('POST', '/api/auth/login', {
      body: { email: 'admin@localhost', password: PASSWORD },
    })
    const session = api.kernel.db
      .sql('SELECT id FROM sessions ORDER BY created_at DESC, rowid DESC')
      .get() as {
      id: string
    }
    meanwhile = () => void api.kernel.db.sql('DELETE FROM sessions WHERE id = ?').run(session.id)
    const { closed } = await open({ authorization: `Bearer ${login.body.data.token}` })
    meanwhile = () => undefined
    expect(await closed).toEqual({ code: 4401 })
  })
  it('counts what comes in one piece with the request for it, too', async () => {
    const ping = Buffer.from([0x89, 0x80, 0, 0, 0, 0])
    const answer = await upgrade('/api/ws', { authorization: `Bearer ${token}` }, Buffer.alloc(60_000, ping))
    // The frame that ends it: 1008, too many frames.
    expect(answer).toContain('\x03\xf0Too many frames.')
    // What was let in is paid for by then.
    api.fakes.clock.advance(30_000)
  })
  it('accepts a ticket once', async () => {
    const { body } = await api.request('POST', '/api/auth/ws-ticket', {
      headers: { authorization: `Bearer ${token}` },
    })
    const path = `/api/ws?ticket=${body.data.ticket}`
    expect([statusOf(await upgrade(path)), statusOf(await upgrade(path))]).toEqual([101, 401])
  })
  it('survives clients that go away while they are refused', async () => {
    await Promise.all(
      Array.from(
        { length: 50 },
        () =>
          new Promise<void>((resolve) => {
            const socket = connect(port, '127.0.0.1', () => {
              socket.write(
                `GET /api/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
              )
              socket.resetAndDestroy()
            })
            socket.on('error', () => undefined).on('close', () => resolve())
          }),
      ),
    )
    expect(statusOf(await upgrade('/api/ws'))).toBe(401)
  })
})

describe('an open WebSocket', () => {
  it('tells what happens to an app, and resumes from a cursor', async () => {
    const first = await open({ authorization: `Bearer ${token}` })
    first.say({ type: 'subscribe', channel: `apps/${app_id}`, after: 0 })
    await first.until('app.created')
    first.socket.close()
    await first.closed
    await api.request('PUT', `/api/apps/${app_id}`, { body: { port: 3000 }, as: 'admin' })
    const second = await open({ authorization: `Bearer ${token}` })
    second.say({ type: 'subscribe', channel: `apps/${app_id}`, after: first.heard.at(-1)!.cursor })
    await second.until('app.updated')
    const all = [...first.heard, ...second.heard]
      .filter((one) => one.type.startsWith('app.') || one.type.startsWith('deployment.'))
      .map((one) => Number(one.cursor))
    expect(all).toEqual(api.services.events.after(0, { app_id }, 1000).map((event) => event.seq))
    second.socket.close()
  })
  it('tells what happens to a node, and knows no other node', async () => {
    const { data } = (await api.request('GET', '/api/nodes', { as: 'admin' })).body
    const { say, until, heard, socket } = await open({ authorization: `Bearer ${token}` })
    say({ type: 'subscribe', channel: 'nodes/node_unknown' })
    await until('error')
    expect(heard.at(-1)).toMatchObject({ data: { code: 'NOT_FOUND' } })
    say({ type: 'subscribe', channel: `nodes/${data[0].id}`, after: 0 })
    await api.request('PUT', `/api/nodes/${data[0].id}`, { body: { labels: { disk: 'nvme' } }, as: 'admin' })
    await until('node.updated')
    expect(JSON.stringify(heard.at(-1))).toContain('"labels":{"disk":"nvme"}')
    socket.close()
  })
  it('is closed at once when its session ends', async () => {
    const login = await api.request('POST', '/api/auth/login', {
      body: { email: 'admin@localhost', password: PASSWORD },
    })
    const bearer = `Bearer ${login.body.data.token}`
    const { closed } = await open({ authorization: bearer })
    expect(
      (await api.request('POST', '/api/auth/logout', { headers: { authorization: bearer } })).status,
    ).toBe(200)
    expect((await closed).code).toBe(4401)
  })
  it('is closed when a message is larger than 64 KiB', async () => {
    const { socket, closed } = await open({ authorization: `Bearer ${token}` })
    socket.send('x'.repeat(64 * 1024 + 1))
    expect((await closed).code).toBe(1009)
  })
  it('is forgotten when the client goes away', async () => {
    await expect.poll(() => api.services.realtime.size).toBe(0)
  })
})
