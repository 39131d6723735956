import { connect as connectHttp2, type OutgoingHttpHeaders } from 'node:http2'
import { connect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createBasicAuth } from '#server/platform/ingress/render/rules'
import { startApp, type Seen, type TestApp } from '../platform/ingress/app.ts'
import { ask, askRaw } from '../platform/ingress/client.ts'
import { openTestEdge, type TestEdge } from '../platform/ingress/edge.ts'

let edge: TestEdge
let [open, guarded, inner]: TestApp[] = []
beforeAll(async () => {
  edge = await openTestEdge()
  ;[open, guarded, inner] = [await startApp('open'), await startApp('guarded'), await startApp('inner')]
  await edge.ingress.ensure()
  await edge.ingress.apply({
    routes: [
      { id: 'dom_open', app_id: 'app_1', hostnames: ['open.test'], servers: [open.server] },
      {
        id: 'dom_guarded',
        app_id: 'app_2',
        hostnames: ['guarded.test'],
        servers: [guarded.server],
        basic_auth: createBasicAuth('ada', 'secret'),
      },
      { id: 'dom_shared', app_id: 'app_1', hostnames: ['shared.test'], servers: [open.server] },
      {
        id: 'dom_inner',
        app_id: 'app_3',
        hostnames: ['shared.test'],
        path: '/admin',
        servers: [inner.server],
        allowed_addresses: ['10.255.255.0/24'],
      },
    ],
  })
})
afterAll(async () => {
  await edge.close()
  await Promise.all([open?.kill(), guarded?.kill(), inner?.kill()])
})
const seenIn = (raw: string): Seen[] =>
  raw
    .split(/(?=HTTP\/1\.1 \d{3} )/)
    .map((answer) => answer.slice(answer.indexOf('\r\n\r\n') + 4))
    .filter((body) => body.startsWith('{"app":'))
    .map((json) => JSON.parse(json) as Seen)

describe('a route behind a password', () => {
  const smuggled = 'GET /secret HTTP/1.1\r\nHost: guarded.test\r\n\r\n'
  test.each<[string, string]>([
    ['a second request on the same connection', `GET / HTTP/1.1\r\nHost: open.test\r\n\r\n${smuggled}`],
    [
      'a request hidden in a body of two lengths',
      `POST / HTTP/1.1\r\nHost: open.test\r\nContent-Length: ${smuggled.length + 5}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    ],
    [
      'a transfer-encoding in mixed case, twice',
      `POST / HTTP/1.1\r\nHost: open.test\r\nTrAnSfEr-EnCoDiNg: chunked\r\nTransfer-encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    ],
    [
      'a transfer-encoding behind a tab',
      `POST / HTTP/1.1\r\nHost: open.test\r\nTransfer-Encoding:\tchunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n${smuggled}`,
    ],
    [
      'a transfer-encoding with an underscore',
      `POST / HTTP/1.1\r\nHost: open.test\r\nTransfer_Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n${smuggled}`,
    ],
    ['a bare line feed', `GET / HTTP/1.1\nHost: open.test\n\n${smuggled}`],
    ['an absolute target', 'GET http://guarded.test/secret HTTP/1.1\r\nHost: guarded.test\r\n\r\n'],
    [
      'an absolute target with another host',
      'GET http://guarded.test/secret HTTP/1.1\r\nHost: open.test\r\n\r\n',
    ],
    ['its name in another spelling', 'GET /secret HTTP/1.1\r\nHost: GUARDED.test.:80\r\n\r\n'],
    [
      'a forwarded host',
      'GET /secret HTTP/1.1\r\nHost: open.test\r\nX-Forwarded-Host: guarded.test\r\nForwarded: host=guarded.test\r\n\r\n',
    ],
    [
      'wrong credentials beside right ones in another header',
      `GET /secret HTTP/1.1\r\nHost: guarded.test\r\nAuthorization_: Basic YWRhOnNlY3JldA==\r\nProxy-Authorization: Basic YWRhOnNlY3JldA==\r\n\r\n`,
    ],
    ['a method that is none', 'WHATEVER /secret HTTP/1.1\r\nHost: guarded.test\r\n\r\n'],
  ])('is not reached by %s', async (_what, bytes) => {
    expect(seenIn(await askRaw(edge.edge, bytes)).filter((one) => one.app === 'guarded')).toEqual([])
  })

  test('asks each request of a connection anew, and the app never sees the password', async () => {
    const login = `Authorization: Basic ${Buffer.from('ada:secret').toString('base64')}\r\n`
    const raw = await askRaw(
      edge.edge,
      `GET /one HTTP/1.1\r\nHost: guarded.test\r\n${login}\r\n${smuggled}GET /three HTTP/1.1\r\nHost: guarded.test\r\n${login}\r\n`,
    )
    expect(seenIn(raw).map((one) => one.url)).toEqual(['/one', '/three'])
    expect(raw.match(/HTTP\/1\.1 401/g)).toHaveLength(1)
    expect(JSON.stringify(seenIn(raw).map((one) => one.headers))).not.toContain('authorization')
  })
})

describe('a path that only some addresses may see', () => {
  test.each([
    '/admin',
    '/admin/',
    '/admin/x',
    '//admin',
    '/%61dmin',
    '/admin%2fx',
    '/x/../admin',
    '/x/..%2fadmin',
    '/%2e%2e/admin',
    '/%252e%252e/admin',
    '/.;/admin',
    '/;a=b/admin',
    '/admin;a=b',
    '/x\\..\\admin',
    '/./admin',
    '/ADMIN/../admin',
    '/admin?x=/y',
    '/admin%00',
  ])('is not reached by %s', async (path) => {
    const raw = await askRaw(
      edge.edge,
      `GET ${path} HTTP/1.1\r\nHost: shared.test\r\nConnection: close\r\n\r\n`,
    )
    expect(seenIn(raw).filter((one) => one.app === 'inner')).toEqual([])
    expect(raw).toMatch(/^HTTP\/1\.1 (200|400|403)/)
  })
})

/** One request over HTTP/2 with these headers; its status, or why there is none. */
function askFrames(
  headers: OutgoingHttpHeaders,
  body?: string,
): Promise<{ status: number | string; text: string }> {
  return new Promise((resolve) => {
    const session = connectHttp2('https://open.test', {
      createConnection: () =>
        connect({
          ...edge.https,
          servername: 'open.test',
          rejectUnauthorized: false,
          ALPNProtocols: ['h2'],
        }),
    })
    const end = (status: number | string, text = '') => {
      session.destroy()
      resolve({ status, text })
    }
    session.on('error', (error) => end(error.message))
    try {
      const stream = session.request(
        { ':path': '/', ':authority': 'open.test', ...headers },
        { endStream: body === undefined },
      )
      let [status, text] = [0, '']
      stream
        .on('response', (answer) => {
          status = Number(answer[':status'])
        })
        .setEncoding('utf8')
        .on('data', (chunk: string) => {
          text += chunk
        })
      stream.on('error', (error) => end(error.message)).on('end', () => end(status, text))
      if (body !== undefined) stream.end(body)
    } catch (error) {
      end((error as Error).message)
    }
  })
}

describe('HTTP/2', () => {
  test('a name in :authority is the one that counts, and a host beside it cannot lead elsewhere', async () => {
    const { status, text } = await askFrames({ ':authority': 'open.test', host: 'guarded.test' })
    if (status === 200) expect((JSON.parse(text) as Seen).app).toBe('open')
    expect(text).not.toContain('"app":"guarded"')
  })
  test('a body longer or shorter than stated is refused', async () => {
    for (const length of ['1', '10'])
      expect((await askFrames({ ':method': 'POST', 'content-length': length }, 'hello')).text).not.toContain(
        '"app"',
      )
  })
  test('headers beyond the limit are refused and the next request is served', async () => {
    expect((await askFrames({ 'x-large': 'x'.repeat(20_000) })).status).not.toBe(200)
    expect((await askFrames({})).status).toBe(200)
  })
})

describe('TLS that ends in front', () => {
  test('a trusted proxy that says HTTPS is not sent round in circles, and somebody else who says so is sent to HTTPS', async () => {
    const trusting = await openTestEdge({ trusted_proxies: ['127.0.0.0/8'] })
    try {
      await trusting.ingress.ensure()
      const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-for': '203.0.113.7' }
      for (const { ingress, edge: address } of [trusting, edge])
        await ingress
          .setRoute({
            id: 'dom_forced',
            app_id: 'app_1',
            hostnames: ['forced.test'],
            servers: [open!.server],
            force_https: true,
          })
          .then(() => address)
      const believed = await ask(trusting.edge, 'forced.test', { headers })
      expect(believed.status).toBe(200)
      expect(believed.seen.headers).toMatchObject({
        'x-forwarded-proto': 'https',
        'x-real-ip': '203.0.113.7',
      })
      const unsaid = { 'x-forwarded-for': '203.0.113.7' }
      expect((await ask(trusting.edge, 'forced.test', { headers: unsaid })).status).toBe(200)
      const plain = await ask(trusting.edge, 'forced.test', {
        headers: { ...headers, 'x-forwarded-proto': 'http' },
      })
      expect(plain).toMatchObject({
        status: 308,
        headers: { location: expect.stringMatching(/^https:\/\/forced\.test/) },
      })
      expect(await ask(edge.edge, 'forced.test', { headers })).toMatchObject({
        status: 308,
        headers: { location: expect.stringMatching(/^https:\/\/forced\.test/) },
      })
    } finally {
      await trusting.close()
    }
  })
  test('a client of a trusted proxy that speaks HTTPS gets what HTTPS alone may carry, and the app hears the port that the client sees, not that of the edge', async () => {
    const trusting = await openTestEdge({ trusted_proxies: ['127.0.0.0/8'] })
    try {
      await trusting.ingress.ensure()
      await trusting.ingress.setRoute({
        id: 'dom_front',
        app_id: 'app_1',
        hostnames: ['front.test'],
        servers: [open!.server],
        force_https: true,
        aliases: { 'www.front.test': 'front.test' },
        response_headers: { 'Strict-Transport-Security': 'max-age=60' },
      })
      const secure = await ask(trusting.edge, 'front.test', {
        headers: { 'x-forwarded-proto': 'https' },
      })
      expect([secure.headers['strict-transport-security'], secure.seen.headers['x-forwarded-port']]).toEqual([
        'max-age=60',
        '443',
      ])
      const unsaid = await ask(trusting.edge, 'front.test')
      expect([unsaid.headers['strict-transport-security'], unsaid.seen.headers['x-forwarded-port']]).toEqual([
        undefined,
        String(trusting.edge.port),
      ])
      const told = await ask(trusting.edge, 'front.test', {
        headers: { 'x-forwarded-proto': 'https', 'x-forwarded-port': '8443' },
      })
      expect(told.seen.headers['x-forwarded-port']).toBe('8443')
      const moved = async (host: string, scheme: string) =>
        (await ask(trusting.edge, host, { path: '/a?b', headers: { 'x-forwarded-proto': scheme } })).headers
          .location
      expect([
        await moved('front.test', 'http'),
        await moved('www.front.test', 'http'),
        await moved('www.front.test', 'https'),
      ]).toEqual(Array(3).fill('https://front.test/a?b'))
    } finally {
      await trusting.close()
    }
  })
})
