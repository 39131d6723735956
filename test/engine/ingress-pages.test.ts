import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Route } from '#server/platform/ingress/ingress'
import { startApp, type TestApp } from '../platform/ingress/app.ts'
import { ask, until } from '../platform/ingress/client.ts'
import { docker, openTestEdge, type TestEdge } from '../platform/ingress/edge.ts'

let edge: TestEdge
let app: TestApp
beforeAll(async () => {
  edge = await openTestEdge()
  app = await startApp('app')
  await edge.ingress.ensure()
})
afterAll(async () => {
  await edge.close()
  await app.kill()
})
const setRoute = (rules: Partial<Route>) =>
  edge.ingress.setRoute({
    id: 'dom_1',
    app_id: 'app_1',
    hostnames: ['app.test'],
    servers: [],
    ...rules,
  })
const PAGE = '<h1>Grüße, "zurück" um 5 % \'später\' & <b>\\o/</b></h1>\n<p>$HOME %[src] ; | #</p>'
const SHOWN = PAGE.replace('\n', ' ')

test("a route answers with its own page from the next request on, without a reload, and with the edge's own when it has none", async () => {
  await setRoute({})
  expect((await ask(edge.edge, 'app.test')).text).toContain('The app is not running')
  const started = (await docker.getContainer(edge.container.name).inspect()).State.StartedAt
  const workers = await docker.getContainer(edge.container.name).top()
  await setRoute({ error_pages: { 503: PAGE } })
  expect(await ask(edge.edge, 'app.test')).toMatchObject({
    status: 503,
    text: SHOWN,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'content-length': String(Buffer.byteLength(SHOWN)),
    },
  })
  await setRoute({ error_pages: { 503: '<p>second</p>' } })
  expect((await ask(edge.edge, 'app.test')).text).toBe('<p>second</p>')
  await setRoute({})
  expect((await ask(edge.edge, 'app.test')).text).toContain('The app is not running')
  expect((await docker.getContainer(edge.container.name).top()).Processes.length).toBe(
    workers.Processes.length,
  )
  expect((await docker.getContainer(edge.container.name).inspect()).State.StartedAt).toBe(started)
})

test('each status has its page: a refusal, a broken answer, an app that is silent', async () => {
  const error_pages = { 403: 'own 403', 502: 'own 502', 503: 'own 503', 504: 'own 504' }
  await setRoute({ error_pages, allowed_addresses: ['10.0.0.0/8'] })
  expect(await ask(edge.edge, 'app.test')).toMatchObject({ status: 403, text: 'own 403' })
  await setRoute({ error_pages, servers: [app.server] })
  expect(await ask(edge.edge, 'app.test', { path: '/broken', method: 'POST' })).toMatchObject({
    status: 502,
    text: 'own 502',
  })
  await setRoute({ error_pages, servers: [app.server], request_timeout_ms: 300 })
  expect(await ask(edge.edge, 'app.test', { path: '/hold' })).toMatchObject({
    status: 504,
    text: 'own 504',
  })
  app.release()
})

test('a route in maintenance shows its own page when it has one, whether or not the app runs', async () => {
  await setRoute({ maintenance: true, error_pages: { 503: PAGE }, servers: [app.server] })
  expect(await ask(edge.edge, 'app.test')).toMatchObject({
    status: 503,
    text: SHOWN,
    headers: { 'cache-control': 'no-store' },
  })
  await setRoute({ maintenance: true, error_pages: { 503: PAGE } })
  expect((await ask(edge.edge, 'app.test')).text).toBe(SHOWN)
  await setRoute({ maintenance: true, error_pages: { 502: 'own 502' } })
  expect((await ask(edge.edge, 'app.test')).text).toContain('Back soon')
  await setRoute({ error_pages: { 503: PAGE }, servers: [app.server] })
  expect((await ask(edge.edge, 'app.test')).status).toBe(200)
})

test('what the app answers is never replaced', async () => {
  await setRoute({ error_pages: { 503: 'own', 404: 'own' }, servers: [app.server] })
  expect((await ask(edge.edge, 'app.test')).seen.app).toBe('app')
})

test('the largest page comes whole and lasts over a restart of the edge', async () => {
  const page = 'ä<>'.repeat(3_750)
  expect(Buffer.byteLength(page)).toBe(15_000)
  await setRoute({ error_pages: { 503: page } })
  expect((await ask(edge.edge, 'app.test')).text).toBe(page)
  await docker.getContainer(edge.container.name).kill()
  await edge.ingress.ensure()
  await until('it serves again', async () => (await ask(edge.edge, 'app.test')).text === page)
})

test.each<[string, Record<string, string>]>([
  ['a page too long', { 503: 'x'.repeat(15_001) }],
  ['a status of the app', { 200: 'x' }],
  ['an empty page', { 503: '' }],
  ['a page with a null byte', { 503: 'a\0b' }],
])('%s is refused', async (_what, error_pages) => {
  await expect(setRoute({ error_pages })).rejects.toThrow(
    'The route of dom_1 cannot be set: one of its pages',
  )
})
