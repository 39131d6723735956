import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { PlatformEvent } from '#server/kernel/events'
import { createLog } from '#server/kernel/log'
import { createFakeIngress, type FakeIngress } from '#server/platform/ingress/fake/fake'
import { createTraffic, type Traffic } from '#server/traffic/service'
import { createTestClock, type TestClock } from '#test/support/clock'
import { request } from './requests.ts'

let directory: string
let ingress: FakeIngress
let clock: TestClock
let apps: Set<string>
let deleted: (app_id: string) => void
const events = {
  subscribe: (listener: (event: PlatformEvent) => void) => (
    (deleted = (app_id) => listener({ type: 'app.deleted', app_id } as PlatformEvent)), () => undefined
  ),
}
let traffic: Traffic
const NO_SECRETS = { db: { state: () => '' }, secrets: () => [], secretsSoon: async () => [] }

/** Portreeve as after a start on the same folder. */
async function start(): Promise<Traffic> {
  const created = createTraffic({
    clock,
    log: createLog('text', 'error'),
    events,
    ingress,
    directory,
    projectOf: (id) => (apps.has(id) ? 'prj_1' : undefined),
    ...NO_SECRETS,
  })
  await created.start()
  return created
}
beforeEach(async () => {
  directory = join(mkdtempSync(join(tmpdir(), 'portreeve-traffic-')), 'access')
  ingress = createFakeIngress()
  clock = createTestClock()
  apps = new Set(['app_1', 'app_2'])
  traffic = await start()
})
afterEach(() => {
  traffic.stop()
  rmSync(join(directory, '..'), { recursive: true, force: true })
})
const paths = (query = {}) =>
  traffic.lines('app_1', { tail: 100, ...query }).then((lines) => lines.map((line) => line.request?.path))
const bytesOf = (app_id: string) =>
  readdirSync(join(directory, app_id)).reduce(
    (sum, name) => sum + statSync(join(directory, app_id, name)).size,
    0,
  )

it('each app has a log of its own, newest lines last, with the parts of each request and a line to read', async () => {
  ingress.answered([
    request({ target: '/one?token=x' }),
    request({ app_id: 'app_2', target: '/two' }),
    request({ target: '/three', status: 404, user_agent: 'a "b" \u202e' }),
  ])
  expect(await paths()).toEqual(['/one?token=[redacted]', '/three'])
  expect(await traffic.lines('app_1', { tail: 1 })).toMatchObject([
    {
      at: '2026-01-31T12:00:00.000Z',
      stream: 'access',
      source: 'shop.test',
      text: expect.stringMatching(
        /^203\.0\.113\.7 GET shop\.test\/three HTTP\/1\.1 404 200 B 6 ms "a \\"b\\" \\u202e"$/,
      ),
      request: { status: 404, server: '10.0.0.1:80', secure: true },
    },
  ])
  expect(
    readFileSync(join(directory, 'app_1', readdirSync(join(directory, 'app_1'))[0]!), 'utf8'),
  ).not.toContain('token=x')
})

it('lines are found by time and by text', async () => {
  for (const second of [1, 2, 3, 4])
    ingress.answered([request({ target: `/at-${second}`, at_ms: clock.now() + second * 1000 })])
  expect(await paths({ since: '2026-01-31T12:00:02.000Z', until: '2026-01-31T12:00:04.000Z' })).toEqual([
    '/at-2',
    '/at-3',
  ])
  expect(await paths({ q: 'AT-3' })).toEqual(['/at-3'])
  expect(await paths({ tail: 2 })).toEqual(['/at-3', '/at-4'])
})

it('a log never outgrows its bound, and what is kept are the newest lines', async () => {
  for (let second = 0; second < 60; second++) {
    ingress.answered(
      Array.from({ length: 500 }, (_, index) =>
        request({ target: `/${second}/${index}/${'x'.repeat(900)}` }),
      ),
    )
    clock.advance(1_000)
    traffic.flush()
  }
  expect(bytesOf('app_1')).toBeLessThanOrEqual(5 * 2 * 1024 * 1024)
  expect(readdirSync(join(directory, 'app_1')).length).toBeLessThanOrEqual(5)
  expect((await paths({ tail: 1 }))[0]).toMatch(/^\/59\/499\//)
  expect(traffic.after('app_1', 29_998, 10).map((line) => line.seq)).toEqual([29_999, 30_000])
})

it('a flood is counted in full and listed up to a thousand lines a second, which the log says', async () => {
  ingress.answered(Array.from({ length: 5_000 }, () => request()))
  clock.advance(1_000)
  ingress.answered([request({ target: '/calm' })])
  const lines = await traffic.lines('app_1', { tail: 5_000 })
  expect(lines).toHaveLength(1_002)
  expect(lines.at(-2)).toMatchObject({
    stream: 'system',
    source: 'edge',
    text: '4000 more requests of this second are counted, not listed.',
  })
  expect(lines.at(-1)?.request?.path).toBe('/calm')
  expect(lines.at(-1)).toMatchObject({ level: 'info', stream: 'access' })
  const paged: typeof lines = []
  for (let page: typeof lines; (page = traffic.after('app_1', paged.length, 5_000)).length > 0; )
    paged.push(...page)
  expect(paged).toEqual(lines)
  expect(traffic.samples.lastMinute('app_1').requests).toBe(5_001)
})

it('after a crash nothing is listed twice, though the edge tells it again', async () => {
  const told = [request({ target: '/a' }), request({ target: '/b' })]
  ingress.answered(told)
  traffic.flush()
  traffic.stop()
  traffic = await start()
  ingress.answered([...told, request({ target: '/c' })])
  expect(await paths()).toEqual(['/a', '/b', '/c'])
  expect(traffic.after('app_1', 2, 10).map((line) => line.seq)).toEqual([3])
})

it('the next start asks the edge from where the last one stopped', async () => {
  const last = request()
  ingress.answered([last])
  traffic.stop()
  let asked: string | undefined
  traffic = createTraffic({
    clock,
    log: createLog('text', 'error'),
    events,
    directory,
    projectOf: () => 'prj_1',
    ...NO_SECRETS,
    ingress: {
      followRequests: ({ cursor }) => {
        asked = cursor
      },
    },
  })
  await traffic.start()
  expect(asked).toBe(last.id)
})

it('a file that ends in half a line after a power cut is read up to there and gone on from', async () => {
  ingress.answered([request({ target: '/whole' })])
  traffic.stop()
  const path = join(directory, 'app_1', readdirSync(join(directory, 'app_1'))[0]!)
  appendFileSync(path, '{"seq":2,"at":"2026')
  traffic = await start()
  ingress.answered([request({ target: '/next' })])
  expect(await paths()).toEqual(['/whole', '/next'])
})

it('the log goes with its app, and one whose app went while Portreeve was down goes at the next start', async () => {
  ingress.answered([request(), request({ app_id: 'app_2' })])
  traffic.flush()
  apps.delete('app_1')
  deleted('app_1')
  ingress.answered([request()])
  traffic.flush()
  expect(readdirSync(directory)).not.toContain('app_1')
  traffic.stop()
  apps.delete('app_2')
  traffic = await start()
  expect(existsSync(join(directory, 'app_2'))).toBe(false)
})

it('a disk that takes nothing costs lines, not memory and not the server', async () => {
  rmSync(directory, { recursive: true })
  writeFileSync(directory, 'in the way')
  for (let second = 0; second < 5; second++) {
    ingress.answered(Array.from({ length: 900 }, (_, index) => request({ target: `/${second}/${index}` })))
    clock.advance(1_000)
    expect(() => traffic.flush()).not.toThrow()
  }
  rmSync(directory)
  mkdirSync(directory)
  ingress.answered([request({ target: '/again' })])
  expect((await paths({ tail: 5_000 })).length).toBeLessThanOrEqual(1_001)
  expect(await paths({ tail: 1 })).toEqual(['/again'])
})

it('a listener hears lines at once and can go on from a number', async () => {
  const heard: number[] = []
  const unsubscribe = traffic.subscribe('app_1', (line) => heard.push(line.seq))
  ingress.answered([request(), request(), request({ app_id: 'app_2' })])
  await expect.poll(() => heard).toEqual([1, 2])
  unsubscribe()
  ingress.answered([request()])
  expect(heard).toEqual([1, 2])
  expect(traffic.latest('app_1')).toBe(3)
  expect(traffic.after('app_1', 1, 10).map((line) => line.seq)).toEqual([2, 3])
})
