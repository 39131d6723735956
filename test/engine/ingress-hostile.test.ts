import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Seen } from '../platform/ingress/app.ts'
import { startApp, type TestApp } from '../platform/ingress/app.ts'
import { ask, askRaw } from '../platform/ingress/client.ts'
import { openTestEdge, type TestEdge } from '../platform/ingress/edge.ts'

let edge: TestEdge
let app: TestApp
let secret: TestApp
beforeAll(async () => {
  edge = await openTestEdge()
  ;[app, secret] = [await startApp('app'), await startApp('secret')]
  await edge.ingress.ensure()
  await edge.ingress.apply({
    routes: [
      { id: 'app_1', hostnames: ['app.test'], servers: [app.server] },
      { id: 'app_2', hostnames: ['secret.test'], servers: [secret.server] },
    ],
  })
})
afterAll(async () => {
  await edge.close()
  await Promise.all([app.kill(), secret.kill()])
})

/** What the app saw of the requests of one connection, by the answers on it. */
function seenIn(raw: string): Seen[] {
  return raw
    .split(/(?=HTTP\/1\.1 \d{3} )/)
    .map((answer) => answer.slice(answer.indexOf('\r\n\r\n') + 4))
    .filter((body) => body.startsWith('{"app":'))
    .map((json) => JSON.parse(json) as Seen)
}
const get = (path = '/', hostname = 'app.test') => `GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`

describe('who the client is', () => {
  const lies = [
    'X-Forwarded-For',
    'X-Forwarded-Proto',
    'X-Forwarded-Host',
    'X-Forwarded-Port',
    'X-Forwarded-Server',
    'X-Forwarded-Ssl',
    'X-Real-IP',
    'Forwarded',
    'X-Client-IP',
    'True-Client-IP',
    'CF-Connecting-IP',
    'X-Cluster-Client-IP',
    'X-Original-URL',
    'X-Rewrite-URL',
    'Proxy',
  ]

  test('nothing a client says about itself reaches the app, whatever the spelling', async () => {
    const twins = lies.flatMap((name) => [
      name,
      name.toUpperCase(),
      name.replaceAll('-', '_'),
      name.replace('-', '_').toLowerCase(),
    ])
    const headers = Object.fromEntries(twins.map((name) => [name, 'evil.example']))
    const { seen } = await ask(edge.edge, 'app.test', { headers })
    expect(JSON.stringify(seen.raw)).not.toContain('evil')
    expect(seen.headers).toMatchObject({
      'x-forwarded-for': '127.0.0.1',
      'x-real-ip': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'app.test',
      'x-forwarded-port': String(edge.edge.port),
    })
  })

  test('each header is there once, though the client sends it many times', async () => {
    const { seen } = await ask(edge.edge, 'app.test', {
      headers: { 'x-forwarded-for': ['1.1.1.1', '2.2.2.2'], 'x-real-ip': ['3.3.3.3'] },
    })
    const names = seen.raw.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase())
    for (const name of ['x-forwarded-for', 'x-real-ip', 'x-forwarded-proto'])
      expect(names.filter((found) => found === name)).toHaveLength(1)
  })

  test('a client cannot have the edge remove its headers by naming them in Connection', async () => {
    const { seen } = await ask(edge.edge, 'app.test', {
      headers: { connection: 'close, X-Forwarded-For, X-Real-IP' },
    })
    expect(seen.headers).toMatchObject({ 'x-forwarded-for': '127.0.0.1', 'x-real-ip': '127.0.0.1' })
  })

  test('a trusted proxy is believed; what its client invented in front of it is not taken for the client', async () => {
    const trusting = await openTestEdge({ trusted_proxies: ['127.0.0.1', '10.9.0.0/16'] })
    try {
      await trusting.ingress.ensure()
      await trusting.ingress.setRoute({
        id: 'app_1',
        hostnames: ['app.test'],
        servers: [app.server],
      })
      const { seen } = await ask(trusting.edge, 'app.test', {
        headers: {
          'x-forwarded-for': '6.6.6.6, 203.0.113.7, 10.9.0.1',
          'x-forwarded-proto': 'https',
          'x-forwarded-host': 'shop.example',
          'x-forwarded-port': '443',
        },
      })
      expect(seen.headers).toMatchObject({
        'x-real-ip': '203.0.113.7',
        'x-forwarded-for': '6.6.6.6, 203.0.113.7, 10.9.0.1, 127.0.0.1',
        'x-forwarded-proto': 'https',
        'x-forwarded-host': 'shop.example',
        'x-forwarded-port': '443',
      })
      const odd = await ask(trusting.edge, 'app.test', {
        headers: { 'x-forwarded-for': 'not an address', 'x-forwarded-proto': 'gopher' },
      })
      expect(odd.seen.headers).toMatchObject({
        'x-real-ip': '127.0.0.1',
        'x-forwarded-proto': 'http',
      })
    } finally {
      await trusting.close()
    }
  })
})

describe('requests made to be read in two ways', () => {
  const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: secret.test\r\n\r\n'
  test.each<[string, string]>([
    [
      'two content-lengths',
      `POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 0\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
    ],
    [
      'a list of content-lengths',
      `POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 0, ${smuggled.length}\r\n\r\n${smuggled}`,
    ],
    ['a signed content-length', `POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: +0\r\n\r\n${smuggled}`],
    [
      'an obscured transfer-encoding',
      `POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 0\r\nTransfer-Encoding: xchunked\r\n\r\n${smuggled}`,
    ],
    [
      'a space before the colon',
      `POST / HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding : chunked\r\nContent-Length: 0\r\n\r\n${smuggled}`,
    ],
    [
      'a mixed-case double transfer-encoding',
      `POST / HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\ntransfer-ENCODING: identity\r\n\r\n0\r\n\r\n${smuggled}`,
    ],
    [
      'a bare carriage return in a header',
      `GET / HTTP/1.1\r\nHost: app.test\r\nX: y\rContent-Length: 5\r\n\r\n${smuggled}`,
    ],
    [
      'a chunk extension with a line feed',
      `POST / HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n2;\nxx\r\n3a\r\n0\r\n\r\n${smuggled}`,
    ],
    [
      'a chunk size with a sign',
      `POST / HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n${smuggled}`,
    ],
    ['a null byte in a header', `GET / HTTP/1.1\r\nHost: app.test\r\nX: a\0b\r\n\r\n${smuggled}`],
  ])('%s: the connection is refused', async (_what, bytes) => {
    const raw = await askRaw(edge.edge, `${bytes}${get('/after')}`)
    expect(raw).toMatch(/^HTTP\/1\.[01] 400/)
    expect(seenIn(raw)).toEqual([])
  })

  test.each<[string, string, string[]]>([
    [
      'of two lengths the chunked one counts and the connection ends',
      `POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: ${smuggled.length + 5}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
      ['app / 0'],
    ],
    [
      'a bare line feed ends a header',
      `POST / HTTP/1.1\r\nHost: app.test\r\nX: y\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
      ['app / 45', 'app /after 0'],
    ],
    [
      'a folded header is one header',
      `POST / HTTP/1.1\r\nHost: app.test\r\nX: y\r\n Content-Length: 3\r\n\r\n${smuggled}`,
      ['app / 0', 'secret /smuggled 0', 'app /after 0'],
    ],
    [
      'an upgrade to HTTP/2 is not taken',
      `GET / HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n${smuggled}`,
      ['app / 0', 'secret /smuggled 0', 'app /after 0'],
    ],
  ])('%s, for the edge and the app alike', async (_what, bytes, understood) => {
    expect(smuggled).toHaveLength(45)
    const seen = seenIn(await askRaw(edge.edge, `${bytes}${get('/after')}`))
    expect(seen.map((one) => `${one.app} ${one.url} ${one.body_bytes}`)).toEqual(understood)
    for (const one of seen) {
      expect(one.headers).not.toHaveProperty('http2-settings')
      expect(one.headers).not.toHaveProperty('upgrade')
    }
  })

  test.each<[string, string]>([
    ['two hosts', 'GET / HTTP/1.1\r\nHost: app.test\r\nHost: secret.test\r\n\r\n'],
    ['a host with a path', 'GET / HTTP/1.1\r\nHost: app.test/secret.test\r\n\r\n'],
    ['a host with a user', 'GET / HTTP/1.1\r\nHost: secret.test@app.test\r\n\r\n'],
    ['a host with a space', 'GET / HTTP/1.1\r\nHost: app.test secret.test\r\n\r\n'],
    ['a target for another host', 'GET http://secret.test/ HTTP/1.1\r\nHost: app.test\r\n\r\n'],
    ['no host', 'GET / HTTP/1.1\r\n\r\n'],
    ['an empty host', 'GET / HTTP/1.1\r\nHost:\r\n\r\n'],
    ['a port that is none', 'GET / HTTP/1.1\r\nHost: app.test:80x\r\n\r\n'],
    ['an HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a version that is none', 'GET / HTTP/9.9\r\nHost: app.test\r\n\r\n'],
    ['a tunnel', 'CONNECT secret.test:80 HTTP/1.1\r\nHost: secret.test:80\r\n\r\n'],
    ['a trace', 'TRACE / HTTP/1.1\r\nHost: app.test\r\n\r\n'],
  ])('%s is refused or goes nowhere else than its host says', async (_what, bytes) => {
    const raw = await askRaw(edge.edge, bytes)
    expect(seenIn(raw).filter((one) => one.app === 'secret' && !/^Host: secret\.test/m.test(bytes))).toEqual(
      [],
    )
    if (!seenIn(raw).length) expect(raw).toMatch(/^HTTP\/1\.1 (400|404|405|501)|^$/)
  })

  test.each([
    '//secret',
    '/%2e%2e/secret',
    '/..%2fsecret',
    '/%252e%252e/',
    '/a;b=c/../d',
    '/back\\slash',
    '/./x',
    '/a//b',
  ])('the path %s arrives as it was sent', async (path) => {
    expect((await ask(edge.edge, 'app.test', { path })).seen.url).toBe(path)
  })
})

describe('too much and too slow', () => {
  test('headers beyond 16 KiB are refused', async () => {
    expect(
      await askRaw(edge.edge, `GET / HTTP/1.1\r\nHost: app.test\r\nX: ${'x'.repeat(17_000)}\r\n\r\n`),
    ).toMatch(/^HTTP\/1\.1 4\d\d/)
    expect(
      await askRaw(edge.edge, `GET / HTTP/1.1\r\nHost: app.test\r\n${'X-Y: z\r\n'.repeat(500)}\r\n`),
    ).toMatch(/^HTTP\/1\.1 4\d\d/)
  })

  test('a client that never ends its request is sent away after ten seconds, and others are served meanwhile', async () => {
    const slow = askRaw(edge.edge, 'GET / HTTP/1.1\r\nHost: app.test\r\nX-Slow: ')
    expect((await ask(edge.edge, 'app.test')).status).toBe(200)
    expect(await slow).toMatch(/^HTTP\/1\.1 408/)
  })

  test('the edge does not say what it is', async () => {
    for (const hostname of ['app.test', 'unknown.test']) {
      const { headers, text } = await ask(edge.edge, hostname)
      expect(headers).not.toHaveProperty('server')
      expect(headers).not.toHaveProperty('via')
      expect(text).not.toMatch(/haproxy/i)
    }
    expect(await askRaw(edge.edge, 'nonsense\r\n\r\n')).not.toMatch(/haproxy/i)
  })
})
