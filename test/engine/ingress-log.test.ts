import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { EdgeRequest } from '#server/platform/ingress/ingress'
import { createMasterCli } from '#server/platform/ingress/runtime/master-cli'
import { join } from 'node:path'
import { startApp, type TestApp } from '../platform/ingress/app.ts'
import { ask, askRaw, until } from '../platform/ingress/client.ts'
import { docker, openTestEdge, type TestEdge } from '../platform/ingress/edge.ts'
import { askHttp2 } from '../platform/ingress/https.ts'

let edge: TestEdge
let app: TestApp
const listeners: Listener[] = []

interface Listener {
  heard: EdgeRequest[]
  cursor(): string | undefined
  stop(): void
}
/** Listens as Portreeve does, with everything kept. */
function listen(ingress: TestEdge['ingress'], cursor?: string): Listener {
  const ended = new AbortController()
  const heard: EdgeRequest[] = []
  let last = cursor
  ingress.followRequests({
    cursor,
    signal: ended.signal,
    onRequests: (requests, at) => {
      heard.push(...requests)
      last = at
    },
  })
  const listener = { heard, cursor: () => last, stop: () => ended.abort() }
  listeners.push(listener)
  return listener
}
const paths = ({ heard }: Listener) => heard.map((request) => request.target)
const cli = () => createMasterCli(join(edge.directory, 'run/master.sock'))
const workers = () => cli().workers()

beforeAll(async () => {
  edge = await openTestEdge()
  app = await startApp('app')
  await edge.ingress.ensure()
  await edge.ingress.setRoute({
    id: 'dom_1',
    app_id: 'app_1',
    hostnames: ['app.test'],
    servers: [app.server],
  })
})
afterEach(() => {
  for (const listener of listeners.splice(0)) listener.stop()
})
afterAll(async () => {
  await edge.close()
  await app.kill()
})

test('what came while nobody listened is heard by the next listener, each request once', async () => {
  const first = listen(edge.ingress)
  await ask(edge.edge, 'app.test', { path: '/one' })
  await until('the first is heard', () => paths(first).includes('/one'))
  first.stop()
  for (let count = 0; count < 50; count++) await ask(edge.edge, 'app.test', { path: `/away/${count}` })
  const next = listen(edge.reopen(), first.cursor())
  await until('all are heard', () => next.heard.length >= 50)
  await ask(edge.edge, 'app.test', { path: '/after' })
  await until('it goes on', () => paths(next).includes('/after'))
  expect(paths(next).sort()).toEqual(
    [...Array.from({ length: 50 }, (_, count) => `/away/${count}`), '/after'].sort(),
  )
})

test('a request that a reload overtakes is heard from the old worker, which then ends', async () => {
  const listener = listen(edge.ingress)
  const slow = ask(edge.edge, 'app.test', { path: '/hold' })
  await until('the app has it', () => app.held() === 1)
  await until('the listener is there', () => listener.heard.length > 0)
  const before = (await workers()).find((worker) => !worker.old)?.pid
  await edge.ingress.apply({
    routes: [
      { id: 'dom_1', app_id: 'app_1', hostnames: ['app.test'], servers: [app.server] },
      ...Array.from({ length: 400 }, (_, count) => ({
        id: `room_${count}`,
        hostnames: [`room-${count}.test`],
        servers: [],
      })),
    ],
  })
  await ask(edge.edge, 'app.test', { path: '/new-worker' })
  app.release()
  await slow
  await until('both are heard', () =>
    ['/hold', '/new-worker'].every((path) => paths(listener).includes(path)),
  )
  expect(paths(listener).filter((path) => path === '/hold')).toHaveLength(1)
  await until(
    'the old worker is gone',
    async () => !(await workers()).some((worker) => worker.pid === before),
    15_000,
  )
})

test('an edge that died is heard again', async () => {
  const listener = listen(edge.ingress)
  await docker.getContainer(edge.container.name).kill()
  await edge.ingress.ensure()
  await ask(edge.edge, 'app.test', { path: '/reborn' })
  await until('it is heard', () => paths(listener).includes('/reborn'))
})

test('whatever a client sends, a line stands for one request and says what it was', async () => {
  const listener = listen(edge.ingress)
  const agent =
    '"]\\n["forged","b00002|app_2","192.0.2.1"] {"id": "forged", "app": "app_2"} a]b\\]c\\" \t \xff\xfe'
  await askRaw(
    edge.edge,
    Buffer.from(
      `GET /a"b\\c?x={"y":1} HTTP/1.1\r\nHost: app.test\r\nUser-Agent: ${agent}\r\nConnection: close\r\n\r\n`,
      'latin1',
    ),
  )
  await askRaw(
    edge.edge,
    `GET http://user:hunter2@app.test/absolute HTTP/1.1\r\nHost: user:hunter2@app.test\r\nAuthorization: Basic aHVudGVyMg==\r\nCookie: hunter2\r\nConnection: close\r\n\r\n`,
  )
  await ask(edge.edge, 'app.test', {
    path: `/${'"'.repeat(13_000)}`,
    headers: { 'user-agent': '\\"'.repeat(200) },
  })
  await ask(edge.edge, 'app.test', { path: '/last' })
  await until('all are heard', () => paths(listener).includes('/last'))
  expect(listener.heard.some((request) => request.id === 'forged' || request.app_id !== 'app_1')).toBe(false)
  const first = listener.heard.find((request) => request.target.startsWith('/a'))
  expect(first).toMatchObject({ target: '/a%22b\\c?x={%22y%22:1}', status: 200 })
  expect(first?.user_agent).toContain(
    '"]\\n["forged","b00002|app_2","192.0.2.1"] {"id": "forged", "app": "app_2"} a]b\\]c\\" ',
  )
  expect(first?.user_agent).not.toMatch(/[\u0000-\u001f]/)
  expect(JSON.stringify(listener.heard)).not.toContain('hunter2')
  expect(listener.heard.find((request) => request.target.startsWith('/%22%22'))).toMatchObject({
    status: 200,
    user_agent: expect.stringMatching(/^(\\")+$/),
  })
})

test('whatever name below a wildcard a client writes, no request reaches the app without a line', async () => {
  const listener = listen(edge.ingress)
  await edge.ingress.setRoute({
    id: 'dom_any',
    app_id: 'app_1',
    hostnames: ['*.app.test'],
    servers: [app.server],
  })
  const reached: string[] = []
  for (const length of [1, 63, 64, 1_000, 4_000, 9_000]) {
    const path = `/label-of-${length}`
    if ((await ask(edge.edge, `${'a'.repeat(length)}.app.test`, { path })).status === 200) reached.push(path)
  }
  expect(reached).toEqual(['/label-of-1', '/label-of-63'])
  await until('all of them are heard', () => reached.every((path) => paths(listener).includes(path)))
})

test('a request over HTTP/2 names its path alone, and that it was secure', async () => {
  const listener = listen(edge.ingress)
  await askHttp2(edge.https, 'app.test')
  await until('it is heard', () => listener.heard.some((request) => request.secure))
  expect(listener.heard.findLast((request) => request.secure)).toMatchObject({
    target: '/',
    version: 'HTTP/2.0',
    client: '127.0.0.1',
    host: 'app.test',
  })
})

test('the app gets the id of the line, and keeps the one that a client chose', async () => {
  const listener = listen(edge.ingress)
  const { seen } = await ask(edge.edge, 'app.test', { path: '/with-id' })
  await until('it is heard', () => paths(listener).includes('/with-id'))
  expect(seen.headers['x-request-id']).toBe(
    listener.heard.find((request) => request.target === '/with-id')?.id,
  )
  expect(
    (await ask(edge.edge, 'app.test', { headers: { 'x-request-id': 'mine' } })).seen.headers['x-request-id'],
  ).toBe('mine')
})
