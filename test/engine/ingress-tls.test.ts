import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Certificate, Route } from '#server/platform/ingress/ingress'
import { createBasicAuth } from '#server/platform/ingress/render/rules'
import { createSelfSigned } from '#server/platform/ingress/self-signed'
import { runLoad } from '../../bench/support/strict-client.ts'
import { startApp, type TestApp } from '../platform/ingress/app.ts'
import { ask, askRaw, until, upgrade } from '../platform/ingress/client.ts'
import { docker, openTestEdge, type TestEdge } from '../platform/ingress/edge.ts'
import { askHttp2, askHttps, sendHttp2, shakeHands } from '../platform/ingress/https.ts'

let edge: TestEdge
let app: TestApp
let other: TestApp
const certificate = (id: string, ...names: [string, ...string[]]): Certificate => ({
  id,
  names,
  pem: createSelfSigned(names, new Date(), 90),
})
const setRoute = (changes: Partial<Route> = {}) =>
  edge.ingress.setRoute({ id: 'app_1', hostnames: ['app.test'], servers: [app.server], ...changes })

beforeAll(async () => {
  edge = await openTestEdge()
  ;[app, other] = [await startApp('app'), await startApp('other')]
  await edge.ingress.ensure()
})
beforeEach(async () => {
  await edge.ingress.apply({
    routes: [
      { id: 'app_1', hostnames: ['app.test'], servers: [app.server] },
      { id: 'app_2', hostnames: ['other.test'], servers: [other.server] },
    ],
    certificates: [],
  })
})
afterAll(async () => {
  await edge.close()
  await Promise.all([app.kill(), other.kill()])
})

describe('certificates', () => {
  test('a name gets its certificate as soon as it is set; any other name gets one that gives no app away', async () => {
    await edge.ingress.setCertificate(certificate('cert_1', 'app.test', '*.wild.test'))
    expect(await askHttps(edge.https, 'app.test')).toMatchObject({
      status: 200,
      certificate_name: 'app.test',
      seen: {
        app: 'app',
        headers: { 'x-forwarded-proto': 'https', 'x-forwarded-port': String(edge.https.port) },
      },
    })
    expect(await shakeHands(edge.https, 'one.wild.test')).toMatchObject({
      certificate_name: 'app.test',
    })
    for (const name of ['other.test', 'a.b.wild.test', ''])
      expect(await shakeHands(edge.https, name)).toMatchObject({
        certificate_name: 'portreeve.invalid',
      })
  })

  test('two apps that share a name by path share its certificate, also while it is renewed and when one of them goes', async () => {
    await edge.ingress.setCertificate(certificate('cert_1', 'shared.test'))
    await edge.ingress.setRoute({
      id: 'dom_root',
      hostnames: ['shared.test'],
      servers: [app.server],
      force_https: true,
    })
    await edge.ingress.setRoute({
      id: 'dom_api',
      hostnames: ['shared.test'],
      path: '/api',
      servers: [other.server],
      force_https: true,
    })
    const served = async (path: string) => {
      const { certificate_name, seen } = await askHttps(edge.https, 'shared.test', path)
      return `${certificate_name} ${seen.app} ${seen.url}`
    }
    expect([await served('/'), await served('/api/x'), await served('/apis')]).toEqual([
      'shared.test app /',
      'shared.test other /api/x',
      'shared.test app /apis',
    ])
    for (const path of ['/', '/api/x'])
      expect((await ask(edge.edge, 'shared.test', { path })).headers.location).toBe(
        `https://shared.test:${edge.https.port}${path}`,
      )
    await edge.ingress.setCertificate({
      ...certificate('cert_1', 'renewed.test', 'shared.test'),
      names: ['shared.test'],
    })
    expect([await served('/'), await served('/api/x')]).toEqual([
      'renewed.test app /',
      'renewed.test other /api/x',
    ])
    await edge.ingress.removeRoute('dom_api')
    expect(await served('/api/x')).toBe('renewed.test app /api/x')
  })

  test('a renewed certificate is shown at once, though the old one had fewer names; a removed one is gone', async () => {
    await edge.ingress.setCertificate(certificate('cert_1', 'app.test'))
    await edge.ingress.setCertificate({
      ...certificate('cert_1', 'renewed.test', 'app.test'),
      names: ['app.test', 'other.test'],
    })
    for (const name of ['app.test', 'other.test'])
      expect(await shakeHands(edge.https, name)).toMatchObject({ certificate_name: 'renewed.test' })
    await edge.ingress.removeCertificate('cert_1')
    await edge.ingress.removeCertificate('cert_1')
    expect(await shakeHands(edge.https, 'app.test')).toMatchObject({
      certificate_name: 'portreeve.invalid',
    })
    expect(await readdir(join(edge.directory, 'certificates'))).toEqual(['default.pem', 'list.txt'])
  })

  test('certificates are there again after the edge was killed, and Portreeve knows them after its restart', async () => {
    await edge.ingress.setCertificate(certificate('cert_1', 'app.test'))
    const pid = async () => (await docker.getContainer(edge.container.name).inspect()).State.Pid
    const killed = await pid()
    process.kill(killed, 'SIGKILL')
    await until(
      'another edge shows the certificate',
      async () =>
        ![0, killed].includes(await pid()) &&
        JSON.stringify(await shakeHands(edge.https, 'app.test')).includes('"app.test"'),
      5_000,
    )
    const next = edge.reopen()
    await next.ensure()
    await next.apply({ routes: [] })
    expect(await shakeHands(edge.https, 'app.test')).toMatchObject({ certificate_name: 'app.test' })
    edge.ingress = edge.reopen()
    await edge.ingress.removeCertificate('cert_1')
    expect(await shakeHands(edge.https, 'app.test')).toMatchObject({
      certificate_name: 'portreeve.invalid',
    })
  })

  test('keys are readable by nobody else', async () => {
    await edge.ingress.setCertificate(certificate('cert_1', 'app.test'))
    for (const name of await readdir(join(edge.directory, 'certificates')))
      expect((await stat(join(edge.directory, 'certificates', name))).mode & 0o777).toBe(0o600)
    expect((await stat(join(edge.directory, 'certificates'))).mode & 0o777).toBe(0o700)
  })

  test('HTTP/2 and TLS 1.2 and 1.3 are spoken, nothing older', async () => {
    expect(await askHttp2(edge.https, 'app.test')).toMatchObject({
      status: 200,
      seen: { app: 'app', headers: { host: 'app.test', 'x-forwarded-proto': 'https' } },
    })
    expect(await shakeHands(edge.https, 'app.test', { maxVersion: 'TLSv1.2' })).toMatchObject({
      protocol: 'TLSv1.2',
    })
    expect(await shakeHands(edge.https, 'app.test')).toMatchObject({ protocol: 'TLSv1.3' })
    expect(
      await shakeHands(edge.https, 'app.test', {
        minVersion: 'TLSv1',
        maxVersion: 'TLSv1.1',
        ciphers: 'ALL@SECLEVEL=0',
      }),
    ).toEqual(expect.any(String))
  })
})

describe('plain HTTP beside HTTPS', () => {
  test('a route that forces HTTPS sends plain requests there with path and query, and serves over HTTPS', async () => {
    await setRoute({ force_https: true })
    expect(await ask(edge.edge, 'app.test:80', { path: '/a/b?c=d' })).toMatchObject({
      status: 308,
      headers: { location: `https://app.test:${edge.https.port}/a/b?c=d` },
    })
    expect((await askHttps(edge.https, 'app.test')).seen.app).toBe('app')
    expect((await ask(edge.edge, 'other.test')).status).toBe(200)
    await setRoute({ force_https: false })
    expect((await ask(edge.edge, 'app.test')).status).toBe(200)
  })

  test('a challenge is answered for its own name and token only, also while the app is down and HTTPS is forced', async () => {
    await setRoute({ force_https: true, servers: [] })
    const challenge = {
      hostname: 'app.test',
      token: 'tok_en-1',
      key_authorization: 'tok_en-1.thumb-print',
    }
    await edge.ingress.setChallenge(challenge)
    await edge.ingress.setChallenge(challenge)
    await edge.ingress.setChallenge({ ...challenge, hostname: 'no-app.test' })
    for (const hostname of ['app.test', 'no-app.test']) {
      expect(await ask(edge.edge, hostname, { path: '/.well-known/acme-challenge/tok_en-1' })).toMatchObject({
        status: 200,
        text: 'tok_en-1.thumb-print',
      })
    }
    expect((await ask(edge.edge, 'app.test', { path: '/.well-known/acme-challenge/other' })).status).toBe(308)
    expect(
      (await ask(edge.edge, 'unknown.test', { path: '/.well-known/acme-challenge/tok_en-1' })).status,
    ).toBe(404)
    await edge.ingress.removeChallenge(challenge)
    expect((await ask(edge.edge, 'app.test', { path: '/.well-known/acme-challenge/tok_en-1' })).status).toBe(
      308,
    )
    await expect(edge.ingress.setChallenge({ ...challenge, token: '../../etc' })).rejects.toThrow(
      'cannot be answered',
    )
  })
})

describe('what a route asks for beyond its servers', () => {
  test('in maintenance it shows a page, with or without a running app, and nothing else changes', async () => {
    await setRoute({ maintenance: true })
    expect(await ask(edge.edge, 'app.test')).toMatchObject({
      status: 503,
      headers: {
        'cache-control': 'no-store',
        'retry-after': '10',
        'x-content-type-options': 'nosniff',
      },
      text: expect.stringContaining('Back soon'),
    })
    await setRoute({ maintenance: true, servers: [] })
    expect((await ask(edge.edge, 'app.test')).text).toContain('Back soon')
    expect((await ask(edge.edge, 'other.test')).status).toBe(200)
  })

  test('only allowed addresses get in', async () => {
    await setRoute({ allowed_addresses: ['192.0.2.0/24', '2001:db8::/32'] })
    expect((await ask(edge.edge, 'app.test', { headers: { 'x-forwarded-for': '192.0.2.1' } })).status).toBe(
      403,
    )
    await setRoute({ allowed_addresses: [] })
    expect((await ask(edge.edge, 'app.test')).status).toBe(403)
    await setRoute({ allowed_addresses: ['127.0.0.0/8'] })
    expect((await ask(edge.edge, 'app.test')).status).toBe(200)
    expect((await ask(edge.edge, 'other.test')).status).toBe(200)
  })

  test('a name and password are asked for, and neither the app nor the disk gets them', async () => {
    await setRoute({ basic_auth: createBasicAuth('ann', 's3cret: ü"$') })
    const login = (text: string) => ({
      headers: { authorization: `Basic ${Buffer.from(text).toString('base64')}` },
    })
    expect(await ask(edge.edge, 'app.test')).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': 'Basic realm="Restricted"' },
    })
    for (const wrong of ['ann:wrong', 'bob:s3cret: ü"$', ':', 'ann:s3cret: ü"$x'])
      expect((await ask(edge.edge, 'app.test', login(wrong))).status).toBe(401)
    const { status, seen } = await ask(edge.edge, 'app.test', login('ann:s3cret: ü"$'))
    expect(status).toBe(200)
    expect(seen.headers).not.toHaveProperty('authorization')
  })

  test('a body beyond the limit is refused before the app sees it, and one of unstated size too', async () => {
    await setRoute({ body_limit_bytes: 1_000 })
    const post = (bytes: number, headers = {}) =>
      ask(edge.edge, 'app.test', { method: 'POST', body: Buffer.alloc(bytes), headers }).then(
        (answer) => answer.status,
      )
    expect([
      await post(1_000),
      await post(1_001),
      await post(10, { 'transfer-encoding': 'chunked' }),
    ]).toEqual([200, 413, 411])
    expect(
      await askRaw(edge.edge, 'POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 99999999\r\n\r\n'),
    ).toMatch(/^HTTP\/1\.1 413/)
  })

  test('over HTTP/2 a body is held to the limit as well, also when nothing is said of its size', async () => {
    await setRoute({ body_limit_bytes: 1_000 })
    const send = (sizes: readonly number[], headers = {}) =>
      sendHttp2(
        edge.https,
        'app.test',
        sizes.map((size) => Buffer.alloc(size)),
        headers,
      )
    expect(await send([900], { 'content-length': '900' })).toBe(200)
    expect(await send([1_001], { 'content-length': '1001' })).toBe(413)
    expect(await send([500_000, 500_000, 500_000])).toBe(411)
    for (const sizes of [
      [100, 900, 1],
      [1, 100_000],
      [0, 0, 100_000],
      [16_384, 16_384],
    ])
      expect([411, 413]).toContain(await send(sizes))
    expect(await askHttp2(edge.https, 'app.test')).toMatchObject({ status: 200 })
  })

  test('an app that is silent for too long gets its client an answer', async () => {
    await setRoute({ request_timeout_ms: 200 })
    expect((await ask(edge.edge, 'app.test', { path: '/hold' })).status).toBe(504)
  })

  test('headers are set as they were written, whatever is in them; HSTS goes over HTTPS only', async () => {
    const odd = 'a "b" $HOME \\n 100% %[src] \'x\' #no # yes'
    await setRoute({
      response_headers: { 'X-Odd': odd, 'Strict-Transport-Security': 'max-age=31536000' },
    })
    const plain = await ask(edge.edge, 'app.test')
    expect(plain.headers['x-odd']).toBe(odd)
    expect(plain.headers).not.toHaveProperty('strict-transport-security')
    expect((await askHttps(edge.https, 'app.test')).headers['strict-transport-security']).toBe(
      'max-age=31536000',
    )
  })

  test.each<[string, Partial<Route>]>([
    ['an address that is a name', { allowed_addresses: ['localhost'] }],
    ['an address with a directive', { allowed_addresses: ['127.0.0.1 } or { always_true'] }],
    ['a header name with a colon', { response_headers: { 'X: y': 'z' } }],
    ['a header value with a line break', { response_headers: { 'X-Y': 'a\r\nSet-Cookie: b' } }],
    ['a header of the framing', { response_headers: { 'Content-Length': '0' } }],
    ['a password in clear', { basic_auth: { salt: 'x', digest: 'y' } }],
    ['a negative limit', { body_limit_bytes: -1 }],
    ['an endless time limit', { request_timeout_ms: Number.POSITIVE_INFINITY }],
  ])('%s is refused and nothing changes', async (_what, wrong) => {
    await expect(setRoute(wrong)).rejects.toThrow('The route of app_1 cannot be set')
    expect((await ask(edge.edge, 'app.test')).status).toBe(200)
  })

  test('a new app never gets the rules of one that had its backend before', async () => {
    const crowd = Array.from({ length: 235 }, (_, count) => ({
      id: `crowd_${count}`,
      hostnames: [`crowd-${count}.test`],
      servers: [],
    }))
    await edge.ingress.apply({ routes: crowd })
    await setRoute({ allowed_addresses: [], maintenance: true, force_https: true })
    await edge.ingress.removeRoute('app_1')
    for (let count = 0; count < 40; count++) {
      await edge.ingress.setRoute({
        id: `next_${count}`,
        hostnames: ['next.test'],
        servers: [app.server],
      })
      expect((await ask(edge.edge, 'next.test')).status).toBe(200)
      await edge.ingress.removeRoute(`next_${count}`)
    }
  })
})

test('changes of routes, rules and certificates lose no request of another app and cut none of its WebSockets', async () => {
  const socket = await upgrade(edge.edge, 'other.test')
  const ended = Promise.withResolvers<void>()
  const load = runLoad({
    ...edge.edge,
    host_header: 'other.test',
    connections: 50,
    until: ended.promise,
  })
  for (let turn = 0; turn < 12; turn++) {
    await setRoute({ response_headers: { 'X-Turn': String(turn) } })
    await edge.ingress.setCertificate(certificate('cert_1', 'app.test'))
    await setRoute({ force_https: turn % 2 === 0, response_headers: { 'X-Turn': String(turn) } })
    expect(await askHttps(edge.https, 'app.test')).toMatchObject({
      certificate_name: 'app.test',
      headers: { 'x-turn': String(turn) },
    })
  }
  ended.resolve()
  expect(await load).toMatchObject({ failed: {}, failed_total: 0 })
  expect(await socket.say('still')).toBe('other:still')
  socket.close()
})
