import { afterAll, beforeAll, expect, test } from 'vitest'
import { createMasterCli } from '#server/platform/ingress/runtime/master-cli'
import { join } from 'node:path'
import { startApp, type TestApp } from '../platform/ingress/app.ts'
import { type Answer, ask, until } from '../platform/ingress/client.ts'
import { openTestEdge, type TestEdge } from '../platform/ingress/edge.ts'

let edge: TestEdge
let app: TestApp
beforeAll(async () => {
  edge = await openTestEdge()
  await edge.ingress.ensure()
  app = await startApp('awake')
})
afterAll(async () => {
  await edge.close()
  await app.kill()
})
const masterCli = () => createMasterCli(join(edge.directory, 'run/master.sock'))
const asleep = (hostname: string) => ({
  id: `dom_${hostname}`,
  hostnames: [hostname],
  app_id: `app_${hostname}`,
  servers: [],
  asleep: true,
})
const awake = (hostname: string) => ({ ...asleep(hostname), asleep: false, servers: [app.server] })

test('a request that waits outlives a restart of Portreeve and reaches the app in the end', async () => {
  await edge.ingress.setRoute(asleep('restart.test'))
  const first = new AbortController()
  let told = 0
  const onWake = () => {
    told++
    return 'held' as const
  }
  edge.ingress.followWakes({ signal: first.signal, onWake })
  const answer = ask(edge.edge, 'restart.test')
  await until('the first process was told', () => told === 1)
  first.abort()
  const second = edge.reopen()
  const ended = new AbortController()
  second.followWakes({ signal: ended.signal, onWake })
  await until('the next process is told as well', () => told > 1)
  await second.ensure()
  await second.setRoute(awake('restart.test'))
  expect((await answer).status).toBe(200)
  ended.abort()
})

/** Asks for an app that sleeps in a worker that is replaced meanwhile. */
async function overtaken(hostname: string, path: string): Promise<Answer> {
  const ended = new AbortController()
  let told = 0
  edge.ingress.followWakes({
    signal: ended.signal,
    onWake() {
      told++
      return 'held'
    },
  })
  await edge.ingress.setRoute(asleep(hostname))
  const answer = ask(edge.edge, hostname, { path })
  await until('somebody asked', () => told > 0)
  await masterCli().reload()
  return answer.finally(() => ended.abort())
}

test('a request that waits in a worker which is replaced is sent to the one that takes over', async () => {
  const sent = await overtaken('reload.test', '/some?x=1')
  expect([sent.status, sent.headers.location]).toEqual([307, '/some?x=1'])
  await edge.ingress.setRoute(awake('reload.test'))
  expect((await ask(edge.edge, 'reload.test', { path: '/some?x=1' })).seen.url).toBe('/some?x=1')
})

test.each(['//evil.test/x', '/\\evil.test/x'])('%s, sent there so, leads to no other host', async (path) => {
  const { headers } = await overtaken('slashes.test', path)
  expect(new URL(headers.location!, 'http://slashes.test/').host).toBe('slashes.test')
  expect(new URL(headers.location!, 'http://slashes.test/').pathname).toBe(path.replace('\\', '/'))
})

test('a request whose body is refused wakes nobody', async () => {
  const ended = new AbortController()
  const woken: string[] = []
  edge.ingress.followWakes({
    signal: ended.signal,
    onWake(app_id) {
      woken.push(app_id)
      return 'refused'
    },
  })
  await edge.ingress.setRoute({ ...asleep('limited.test'), body_limit_bytes: 10 })
  const send = async (headers: Record<string, string>, body?: Buffer) =>
    (await ask(edge.edge, 'limited.test', { method: 'POST', headers, body })).status
  expect(await send({ 'content-length': '11' }, Buffer.alloc(11))).toBe(413)
  expect(await send({ 'transfer-encoding': 'chunked' }, Buffer.alloc(5))).toBe(411)
  expect(woken).toEqual([])
  expect(await send({ 'content-length': '10' }, Buffer.alloc(10))).toBe(503)
  expect(woken).toEqual(['app_limited.test'])
  ended.abort()
})

/** How often the edge has begun to work on something. */
const turns = async (): Promise<number> =>
  Number(/^tasksw: (\d+)/m.exec(await masterCli().run(['show activity']))?.[1])

test('requests that wait are looked at ever more seldom, so that thousands of them leave the edge to others', async () => {
  const waiting = 200
  const ended = new AbortController()
  edge.ingress.followWakes({ signal: ended.signal, onWake: () => 'held' })
  await edge.ingress.setRoute(asleep('crowd.test'))
  const [began, before] = [performance.now(), await turns()]
  const answers = Array.from({ length: waiting }, () => ask(edge.edge, 'crowd.test'))
  await until('they have waited for a while', () => performance.now() - began > 6_000)
  const of_each_second = ((await turns()) - before) / waiting / ((performance.now() - began) / 1_000)
  await edge.ingress.setRoute(awake('crowd.test'))
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(waiting).fill(200))
  // One of them is looked at 50 times a second at first, and 20 times in the next.
  expect(of_each_second).toBeLessThan(25)
  ended.abort()
})
