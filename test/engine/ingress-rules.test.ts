import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Route, RouteRedirect } from '#server/platform/ingress/ingress'
import { createMasterCli } from '#server/platform/ingress/runtime/master-cli'
import { createBasicAuth } from '#server/platform/ingress/render/rules'
import { createSelfSigned } from '#server/platform/ingress/self-signed'
import { runLoad } from '../../bench/support/strict-client.ts'
import { startApp, type TestApp } from '../platform/ingress/app.ts'
import { ask, askRaw, until, upgrade } from '../platform/ingress/client.ts'
import { docker, openTestEdge, type TestEdge } from '../platform/ingress/edge.ts'
import { askHttps } from '../platform/ingress/https.ts'

let edge: TestEdge
let app: TestApp
let other: TestApp
const set = (changes: Partial<Route> = {}) =>
  edge.ingress.setRoute({ id: 'dom_1', hostnames: ['app.test'], servers: [app.server], ...changes })
const rule = (kind: RouteRedirect['kind'], from: string, to: string): RouteRedirect => ({
  id: 'red',
  kind,
  from,
  to,
  status: 308,
  keep_query: true,
})
const everything = (turn: number): Partial<Route> => ({
  allowed_addresses: ['127.0.0.0/8', '::1', `10.${turn % 256}.0.0/15`],
  body_limit_bytes: 1_000 + turn,
  request_timeout_ms: 5_000 + turn,
  response_headers: { 'X-Turn': String(turn) },
  redirects: [rule('exact', '/old', `/turn-${turn}`), rule('regex', '/n/(\\d+)', '/m/$1')],
  aliases: { 'www.app.test': 'app.test' },
})
const workers = () => createMasterCli(join(edge.directory, 'run/master.sock')).workers()

beforeAll(async () => {
  edge = await openTestEdge()
  ;[app, other] = [await startApp('app'), await startApp('other')]
  await edge.ingress.ensure()
  await edge.ingress.apply({
    routes: [
      { id: 'dom_1', hostnames: ['app.test'], servers: [app.server] },
      { id: 'dom_2', hostnames: ['other.test'], servers: [other.server] },
    ],
  })
})
afterAll(async () => {
  await edge.close()
  await Promise.all([app.kill(), other.kill()])
})

test.each([
  ['/api', 'api'],
  ['/%61pi', 'api'],
  ['//api', 'api'],
  ['/api;x=1', 'api'],
  ['/;x/api', 'api'],
  ['/api%2Fx', 'api'],
  ['/API', 'root'],
  ['/apix', 'root'],
  ['/%2561pi', 'root'],
  ['/x/api', 'root'],
  ['/x/../api', 400],
  ['/x/%2e%2e/api', 400],
  ['/./api', 400],
  ['/x/..;/api', 400],
  ['/x\\..\\api', 400],
  ['/api%00x', 400],
  ['/%0a', 400],
  ['/..', 400],
  ['/..x', 'root'],
  ['/.well-known/x', 'root'],
])(
  'a path that an app could read in two ways never reaches another route than its own: %s',
  async (path, expected) => {
    await edge.ingress.setRoute({
      id: 'dom_root',
      hostnames: ['paths.test'],
      servers: [app.server],
    })
    await edge.ingress.setRoute({
      id: 'dom_api',
      hostnames: ['paths.test'],
      path: '/api',
      servers: [other.server],
    })
    const raw = await askRaw(
      edge.edge,
      `GET ${path} HTTP/1.1\r\nHost: paths.test\r\nConnection: close\r\n\r\n`,
    )
    if (expected === 400) expect(raw).toMatch(/^HTTP\/1\.1 400/)
    else expect(raw).toContain(expected === 'api' ? '"app":"other"' : '"app":"app"')
  },
)

test.each([
  ['/api', '/'],
  ['/api/x%2Fy', '/x%2Fy'],
  ['/api%2Fx', 400],
  ['/api;v=1', 400],
  ['/api;v=1/x', 400],
  ['/%61pi/x', 400],
])('a path whose beginning is taken off reaches the app whole or not at all: %s', async (path, expected) => {
  await edge.ingress.setRoute({
    id: 'dom_root',
    hostnames: ['stripped.test'],
    servers: [app.server],
  })
  await edge.ingress.setRoute({
    id: 'dom_api',
    hostnames: ['stripped.test'],
    path: '/api',
    strip_path: true,
    servers: [other.server],
  })
  const raw = await askRaw(
    edge.edge,
    `GET ${path} HTTP/1.1\r\nHost: stripped.test\r\nConnection: close\r\n\r\n`,
  )
  if (expected === 400) expect(raw).toMatch(/^HTTP\/1\.1 400/)
  else expect(raw).toContain(`"url":"${expected}"`)
})

test('every setting of a route is changed in the running edge: no worker is replaced', async () => {
  const before = await workers()
  await set({
    ...everything(1),
    force_https: true,
    maintenance: true,
    basic_auth: createBasicAuth('ann', 'secret'),
    path: '/x',
    strip_path: true,
  })
  await set(everything(2))
  expect((await ask(edge.edge, 'app.test')).headers['x-turn']).toBe('2')
  await set()
  expect((await ask(edge.edge, 'app.test')).headers).not.toHaveProperty('x-turn')
  expect(await workers()).toEqual(before)
})

test('a killed edge comes back with every rule, without Portreeve', async () => {
  await set({
    ...everything(7),
    path: '/api',
    strip_path: true,
    basic_auth: createBasicAuth('ann', 'secret'),
  })
  await edge.ingress.setRoute({
    id: 'dom_3',
    hostnames: ['app.test'],
    servers: [other.server],
    allowed_addresses: ['192.0.2.1'],
  })
  const pid = async () => (await docker.getContainer(edge.container.name).inspect()).State.Pid
  const killed = await pid()
  process.kill(killed, 'SIGKILL')
  await until(
    'another edge answers',
    async () =>
      ![0, killed].includes(await pid()) &&
      ask(edge.edge, 'other.test').then(
        (answer) => answer.status === 200,
        () => false,
      ),
    5_000,
  )
  expect((await ask(edge.edge, 'app.test')).status).toBe(403)
  expect((await ask(edge.edge, 'app.test', { path: '/api' })).status).toBe(401)
  const answer = await ask(edge.edge, 'app.test', {
    path: '/api/x',
    headers: { authorization: `Basic ${Buffer.from('ann:secret').toString('base64')}` },
  })
  expect([answer.seen.url, answer.seen.headers['x-forwarded-prefix'], answer.headers['x-turn']]).toEqual([
    '/x',
    '/api',
    '7',
  ])
  // Its workers serve a moment before its master can be told anything.
  await until(
    'the new edge takes changes',
    () =>
      edge.ingress.removeRoute('dom_3').then(
        () => true,
        () => false,
      ),
    5_000,
  )
  await set()
})

test('allowed addresses are networks of any size, of both families', async () => {
  for (const [allowed, status] of [
    [['127.0.0.1'], 200],
    [['127.0.0.2'], 403],
    [['126.0.0.0/7'], 200],
    [['0.0.0.0/0'], 200],
    [['127.0.0.0/31'], 200],
    [['127.0.0.2/31'], 403],
    [['::/0'], 403],
    [['10.0.0.0/8', '64.0.0.0/2'], 200],
  ] as const) {
    await set({ allowed_addresses: [...allowed] })
    expect([allowed, (await ask(edge.edge, 'app.test')).status]).toEqual([allowed, status])
  }
  await set()
})

test.each([
  '/(a+)+b',
  '/(a|a)*b',
  '/(a|aa)+$',
  '/(.*)*x',
  '/(?:(?:a*)*)*b',
  '/(a*)*(a*)*(a*)*b',
  '/.*.*.*.*.*.*.*=',
  '/(?=(a+)+b!).*',
  '/(((((a*)*)*)*)*)*!',
])(
  'the pattern %s, which could run for ever, holds up neither its own route nor another',
  async (pattern) => {
    await set({ redirects: [rule('regex', pattern, '/x'), rule('exact', '/ok', '/fine')] })
    const slow = Promise.all(
      Array.from({ length: 20 }, () => ask(edge.edge, 'app.test', { path: `/${'a'.repeat(7_000)}bx=!c` })),
    )
    expect((await ask(edge.edge, 'other.test')).status).toBe(200)
    for (const answer of await slow) expect(answer.status).toBe(200)
    expect((await ask(edge.edge, 'app.test', { path: '/ok' })).headers.location).toBe('/fine')
    await set()
  },
)

test('what one route may not have takes nothing else down', async () => {
  await edge.ingress.apply({
    routes: [
      { id: 'dom_1', hostnames: ['app.test'], servers: [app.server] },
      {
        id: 'dom_bad',
        hostnames: ['bad.test'],
        servers: [app.server],
        redirects: [rule('regex', '(', '/x')],
      },
      {
        id: 'dom_odd',
        hostnames: ['odd.test'],
        servers: [app.server],
        redirects: [rule('regex', '/[\\d-x]', '/x')],
        response_headers: { 'X-Odd': '%[src] ; del map | !h "' },
      },
      { id: 'dom_2', hostnames: ['other.test'], servers: [other.server] },
    ],
  })
  expect((await edge.ingress.status()).refused).toMatchObject([{ route_id: 'dom_bad' }])
  expect((await ask(edge.edge, 'other.test')).seen.app).toBe('other')
  expect((await ask(edge.edge, 'odd.test')).headers['x-odd']).toBe('%[src] ; del map | !h "')
})

test('200 changes of routes, rules, redirects and certificates lose no request of another app and cut none of its WebSockets', async () => {
  const sockets = await Promise.all(Array.from({ length: 5 }, () => upgrade(edge.edge, 'other.test')))
  const ended = Promise.withResolvers<void>()
  const load = runLoad({
    ...edge.edge,
    host_header: 'other.test',
    connections: 20,
    until: ended.promise,
  })
  const own = runLoad({
    ...edge.edge,
    host_header: 'app.test',
    connections: 5,
    until: ended.promise,
  })
  for (let turn = 0; turn < 200; turn++) {
    if (turn % 4 === 0)
      await edge.ingress.setCertificate({
        id: 'cert_1',
        names: ['app.test'],
        pem: createSelfSigned(['app.test'], new Date(), 90),
      })
    else if (turn % 4 === 1) await set(everything(turn))
    else if (turn % 4 === 2)
      await set({ ...everything(turn), servers: [turn % 8 === 2 ? other.server : app.server] })
    else
      await edge.ingress.setChallenge({
        hostname: 'app.test',
        token: `t${turn}`,
        key_authorization: `t${turn}.x`,
      })
    if (turn % 4 === 1)
      expect((await ask(edge.edge, 'www.app.test', { path: '/old?q' })).headers.location).toBe(
        `http://app.test:${edge.edge.port}/old?q`,
      )
    if (turn % 4 === 1)
      expect((await ask(edge.edge, 'app.test', { path: '/old?q' })).headers.location).toBe(`/turn-${turn}?q`)
  }
  ended.resolve()
  for (const result of [await load, await own]) {
    expect(result).toMatchObject({ failed: {}, failed_total: 0 })
    expect(result.sent).toBeGreaterThan(100)
  }
  for (const socket of sockets) expect(await socket.say('still')).toBe('other:still')
  for (const socket of sockets) socket.close()
  expect((await askHttps(edge.https, 'app.test')).certificate_name).toBe('app.test')
})
