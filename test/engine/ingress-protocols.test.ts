import { execFile } from 'node:child_process'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect as connectPlain } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../platform/ingress/client.ts'
import { openTestEdge, type TestEdge } from '../platform/ingress/edge.ts'
import { askHttps, shakeHands } from '../platform/ingress/https.ts'

const run = promisify(execFile)
const TEXT = '<p>one and two and three</p>\n'.repeat(2_000)
let edge: TestEdge
let server: Server
let release: (() => void) | undefined

beforeAll(async () => {
  edge = await openTestEdge()
  server = createServer((request, response) => {
    const path = request.url ?? '/'
    if (path === '/html')
      return void response
        .setHeader('content-type', 'text/html; charset=utf-8')
        .setHeader('etag', '"one"')
        .end(TEXT)
    if (path === '/json')
      return void response.setHeader('content-type', 'application/json').end(JSON.stringify({ text: TEXT }))
    if (path === '/image') return void response.setHeader('content-type', 'image/png').end(TEXT)
    if (path === '/client')
      return void response.end(
        ['x-forwarded-for', 'x-real-ip', 'x-forwarded-proto', 'x-forwarded-port', 'x-forwarded-host']
          .map((name) => request.headers[name])
          .join(' '),
      )
    if (path === '/own')
      return void response
        .setHeader('content-type', 'text/html')
        .setHeader('content-encoding', 'br')
        .end(TEXT)
    if (path === '/as-it-is')
      return void response
        .setHeader('content-type', 'text/html')
        .setHeader('cache-control', 'no-transform')
        .end(TEXT)
    if (path === '/part')
      return void response
        .writeHead(206, {
          'content-type': 'text/html',
          'content-range': `bytes 0-99/${TEXT.length}`,
        })
        .end(TEXT.slice(0, 100))
    if (path === '/events' || path === '/stream') {
      response.setHeader('content-type', path === '/events' ? 'text/event-stream' : 'text/html')
      response.write('data: first\n\n')
      release = () => response.end('data: last\n\n')
      return
    }
    response.end('hello')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  await edge.ingress.ensure()
  await edge.ingress.setRoute({
    id: 'dom_1',
    app_id: 'app_1',
    hostnames: ['app.test'],
    servers: [{ address: '127.0.0.1', port: (server.address() as AddressInfo).port }],
  })
})
afterAll(async () => {
  await edge.close()
  server.closeAllConnections()
  server.close()
})

/** One request whose body is not decoded. */
async function get(
  path: string,
  headers: Record<string, string> = {},
  onChunk?: () => void,
): Promise<{
  status: number
  headers: Record<string, string | string[] | undefined>
  body: Buffer
}> {
  const { request } = await import('node:http')
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { ...edge.edge, path, headers: { host: 'app.test', ...headers }, agent: false },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => {
          chunks.push(chunk)
          onChunk?.()
        })
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks),
          }),
        )
      },
    )
    outgoing.on('error', reject).end()
  })
}
const GZIP = { 'accept-encoding': 'br, gzip' }

describe('compression', () => {
  test.each(['/html', '/json'])(
    '%s of an app that does not compress is compressed for who takes it',
    async (path) => {
      const { headers, body } = await get(path, GZIP)
      expect(headers).toMatchObject({
        'content-encoding': 'gzip',
        vary: expect.stringMatching(/accept-encoding/i),
      })
      expect(body.length).toBeLessThan(TEXT.length / 5)
      expect(gunzipSync(body).toString()).toContain('one and two and three')
    },
  )
  test('who does not ask for it gets the answer as the app gave it', async () => {
    for (const headers of [
      {},
      { 'accept-encoding': 'identity' },
      { 'accept-encoding': 'gzip;q=0' },
    ] as Record<string, string>[]) {
      const answer = await get('/html', headers)
      expect(answer.headers).not.toHaveProperty('content-encoding')
      expect(answer.headers).toMatchObject({ 'content-length': String(TEXT.length), etag: '"one"' })
      expect(answer.body.toString()).toBe(TEXT)
    }
  })
  test('a compressed answer is no longer the same byte for byte, and its tag says so', async () => {
    expect((await get('/html', GZIP)).headers.etag).toBe('W/"one"')
  })
  test.each(['/image', '/as-it-is', '/part', '/own'])('%s passes as it is', async (path) => {
    const { headers, body } = await get(path, GZIP)
    expect(headers['content-encoding']).toBe(path === '/own' ? 'br' : undefined)
    expect(TEXT.startsWith(body.toString())).toBe(true)
  })
  test.each([
    ['/events', undefined],
    ['/stream', 'gzip'],
  ])('the first bytes of %s arrive before the last are written', async (path, encoding) => {
    let chunks = 0
    const answer = get(path, GZIP, () => {
      chunks++
    })
    await until('the first part is here', () => chunks > 0)
    release?.()
    expect((await answer).headers['content-encoding']).toBe(encoding)
  })
})

/** The curl of Debian trixie, which speaks HTTP/3, on the network of this machine. */
const curl = async (...args: string[]): Promise<string> =>
  (
    await run('/usr/bin/docker', [
      'run',
      '--rm',
      '--network',
      'host',
      'portreeve/stand-in:trixie',
      'curl',
      '-sk',
      '--max-time',
      '10',
      '--resolve',
      `app.test:${edge.https.port}:127.0.0.1`,
      ...args,
    ])
  ).stdout
const hasQuic = async (): Promise<boolean> =>
  (await run('/usr/bin/docker', ['exec', edge.container.name, 'haproxy', '-vv'])).stdout.includes('+QUIC')

describe('versions of HTTP', () => {
  test('HTTP/3 is spoken and announced where the build of the edge has it, and neither where it has not', async () => {
    const { headers } = await askHttps(edge.https, 'app.test')
    if (!(await hasQuic())) return expect(headers).not.toHaveProperty('alt-svc')
    expect(headers['alt-svc']).toBe(`h3=":${edge.https.port}"; ma=3600`)
    expect(
      await curl(
        '--http3-only',
        '-w',
        ' %{http_version} %{http_code}',
        `https://app.test:${edge.https.port}/`,
      ),
    ).toBe('hello 3 200')
    return undefined
  })
  test('HTTP/3 goes on after the configuration was loaded anew', async () => {
    if (!(await hasQuic())) return
    await edge.ingress.apply({
      routes: [
        ...Array.from({ length: 300 }, (_, count) => ({
          id: `crowd_${count}`,
          hostnames: [`crowd-${count}.test`],
          servers: [],
        })),
        {
          id: 'dom_1',
          app_id: 'app_1',
          hostnames: ['app.test'],
          servers: [{ address: '127.0.0.1', port: (server.address() as AddressInfo).port }],
        },
      ],
    })
    expect(
      await curl(
        '--http3-only',
        '-w',
        ' %{http_version} %{http_code}',
        `https://app.test:${edge.https.port}/`,
      ),
    ).toBe('hello 3 200')
  })
  test('whatever is spoken, the app hears who its client is, in each request of a connection', async () => {
    const told = `127.0.0.1 127.0.0.1 https ${edge.https.port} app.test:${edge.https.port}`
    const url = `https://app.test:${edge.https.port}/client`
    for (const version of ['--http1.1', '--http2', ...((await hasQuic()) ? ['--http3-only'] : [])]) {
      expect(
        await curl(version, '-w', ' %{num_connects}\n', '-H', 'X-Forwarded-For: 192.0.2.1', url, url),
      ).toMatch(new RegExp(`^${told} 1\n${told} 0\n$`))
    }
    expect(await curl('-H', 'Host: app.test', `http://127.0.0.1:${edge.edge.port}/client`)).toBe(
      `127.0.0.1 127.0.0.1 http ${edge.edge.port} app.test`,
    )
    expect(await curl('-g', '-H', 'Host: APP.test', `http://[::1]:${edge.edge.port}/client`)).toBe(
      `::1 ::1 http ${edge.edge.port} APP.test`,
    )
  })
  test('with two hosts, in which one of both would be somebody else, is 400 and reaches no app', async () => {
    const ask = (...hosts: string[]) =>
      new Promise<string>((resolve, reject) => {
        let text = ''
        const socket = connectPlain(edge.edge.port, '127.0.0.1')
        socket.on('data', (chunk) => (text += chunk.toString()))
        socket.on('error', reject).on('close', () => resolve(text))
        const lines = hosts.map((host) => `Host: ${host}\r\n`).join('')
        socket.write(`GET /client HTTP/1.1\r\n${lines}Connection: close\r\n\r\n`)
      })
    expect(await ask('app.test')).toMatch(/^HTTP\/1.1 200 /)
    for (const hosts of [
      ['app.test', 'other.test'],
      ['other.test', 'app.test'],
    ])
      expect((await ask(...hosts)).slice(0, 12)).toBe('HTTP/1.1 400')
    // The same one twice is one for the edge, and arrives as one.
    expect(await ask('app.test', 'app.test')).toMatch(/^HTTP\/1.1 200 [^]* app\.test$/)
  })
  test('HTTP/2 is preferred over TLS, and clear text is HTTP/1.1', async () => {
    expect(await shakeHands(edge.https, 'app.test', { ALPNProtocols: ['http/1.1', 'h2'] })).toMatchObject({
      application: 'h2',
    })
    expect(await curl('--http2', '-w', ' %{http_version}', `https://app.test:${edge.https.port}/`)).toBe(
      'hello 2',
    )
    expect(
      await curl(
        '--http2',
        '-w',
        ' %{http_version}',
        '-H',
        'Host: app.test',
        `http://127.0.0.1:${edge.edge.port}/`,
      ),
    ).toBe('hello 1.1')
  })
})

describe('TLS', () => {
  test.each(['TLSv1', 'TLSv1.1'])('%s is refused', async (version) => {
    expect(
      typeof (await shakeHands(edge.https, 'app.test', {
        minVersion: version,
        maxVersion: version,
        ciphers: 'DEFAULT@SECLEVEL=0',
      })),
    ).toBe('string')
  })
  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'a session of %s is taken up again without another full handshake',
    async (version) => {
      const open = (session?: Buffer) =>
        new Promise<{ socket: TLSSocket; session: Promise<Buffer> }>((resolve, reject) => {
          const { promise, resolve: keep } = Promise.withResolvers<Buffer>()
          const socket: TLSSocket = connect(
            {
              ...edge.https,
              servername: 'app.test',
              rejectUnauthorized: false,
              minVersion: version,
              maxVersion: version,
              session,
            },
            () => resolve({ socket, session: promise }),
          )
          socket.on('session', keep).on('error', reject)
          socket.write('GET / HTTP/1.1\r\nHost: app.test\r\n\r\n')
          socket.resume()
        })
      const first = await open()
      const session = await first.session
      expect(first.socket.isSessionReused()).toBe(false)
      first.socket.destroy()
      const second = await open(session)
      expect(second.socket.isSessionReused()).toBe(true)
      second.socket.destroy()
    },
  )
  test.each(['app.test', 'unknown.test', ''])(
    'without a certificate for %j the one that is shown names no app',
    async (name) => {
      expect(await shakeHands(edge.https, name)).toMatchObject({
        certificate_name: 'portreeve.invalid',
      })
    },
  )
  test.each(['AES128-SHA', 'ECDHE-RSA-AES128-SHA', 'ECDHE-ECDSA-AES256-SHA384'])(
    'the cipher %s is refused',
    async (cipher) => {
      expect(
        typeof (await shakeHands(edge.https, 'app.test', {
          maxVersion: 'TLSv1.2',
          ciphers: `${cipher}:@SECLEVEL=0`,
        })),
      ).toBe('string')
    },
  )
})
