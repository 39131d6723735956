import { VueQueryPlugin } from '@tanstack/vue-query'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createApp, effectScope } from 'vue'
import type { Me } from '@/api/session'
import { newest, standInForPage } from './fake-socket.ts'

let live: typeof import('@/api/live')
let follow: typeof import('@/api/follow')
let queries: typeof import('@/api/queries')
const scope = effectScope()
beforeEach(async () => {
  vi.useFakeTimers()
  vi.resetModules()
  live = await import('@/api/live')
  follow = await import('@/api/follow')
  queries = await import('@/api/queries')
  standInForPage()
})
afterEach(() => {
  live.stopLive()
  queries.query_client.clear()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})
const ADMIN = { id: 'usr_1', role: 'admin', projects: [] } as unknown as Me
const nothing = () => undefined
const wait = (ms: number) => vi.advanceTimersByTimeAsync(ms)

/** A list whose answers take a while, and how often it was asked for. */
function slowList(takes_ms: number, noun = 'app') {
  const app = createApp({})
  app.use(VueQueryPlugin, { queryClient: queries.query_client })
  const asked = { times: 0, given_up: 0 }
  const load = (signal: AbortSignal) => {
    asked.times += 1
    const answer = asked.times
    return new Promise<{ data: number }>((done, fail) => {
      setTimeout(() => done({ data: answer }), takes_ms)
      signal.addEventListener('abort', () => {
        asked.given_up += 1
        fail(new DOMException('given up', 'AbortError'))
      })
    })
  }
  const read = scope.run(() => app.runWithContext(() => queries.useRead([noun], () => [noun], load)))!
  return { asked, shown: () => read.data.value }
}

it('a list follows events that come faster than it is answered', async () => {
  live.startLive()
  newest().open()
  const end = follow.followEverything(ADMIN, nothing, nothing)
  const list = slowList(400)
  await wait(500)
  expect(list.shown()).toBe(1)
  for (let event = 0; event < 30; event += 1) {
    newest().tell('system', '1', 'app.updated')
    await wait(100)
  }
  expect(list.shown()).toBeGreaterThan(3)
  // The last event is answered, too, and no answer is asked for in vain.
  await wait(2000)
  expect([list.shown(), list.asked.given_up]).toEqual([list.asked.times, 0])
  end()
})
it('a member of any number of projects follows all of them, and by one channel', async () => {
  const projects = Array.from({ length: 300 }, (_, at) => ({ id: `prj_${at}`, name: '', role: 'viewer' }))
  live.startLive()
  newest().open()
  const end = follow.followEverything({ ...ADMIN, role: 'member', projects } as Me, nothing, nothing)
  expect(
    newest()
      .sent.map(({ channel }) => channel)
      .sort(),
  ).toEqual(['account', 'projects'])
  const list = slowList(10)
  await wait(100)
  newest().tell('projects', '1', 'app.updated')
  await wait(500)
  expect(list.shown()).toBe(2)
  end()
})
it('a list that is not answered for very long does not keep the others from following', async () => {
  live.startLive()
  newest().open()
  const end = follow.followEverything(ADMIN, nothing, nothing)
  const stuck = slowList(60_000)
  const list = slowList(100, 'database')
  await wait(500)
  newest().tell('system', '1', 'app.updated')
  await wait(500)
  newest().tell('system', '1', 'database.updated')
  await wait(10_000)
  expect([stuck.shown(), list.shown()]).toEqual([undefined, 2])
  end()
})
