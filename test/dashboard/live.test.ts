import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { FakeSocket, newest, standInForPage } from './fake-socket.ts'

let live: typeof import('@/api/live')
beforeEach(async () => {
  vi.useFakeTimers()
  vi.resetModules()
  // Before the page is stood in for: Vue looks at it when it is loaded.
  live = await import('@/api/live')
  standInForPage()
})
afterEach(() => {
  live.stopLive()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

describe('the live connection', () => {
  it('goes on from its cursor after it was lost, and tells those who need more', () => {
    const heard: unknown[] = []
    const again = vi.fn()
    live.startLive()
    live.onReopened(again)
    live.listen('system', (frame) => heard.push(frame.cursor))
    newest().open()
    expect(newest().sent).toEqual([{ type: 'subscribe', channel: 'system' }])
    newest().tell('system', '41')
    newest().close()
    expect(live.live_state.value).toBe('lost')
    vi.advanceTimersByTime(20_000)
    newest().open()
    expect(newest().sent).toEqual([{ type: 'subscribe', channel: 'system', after: '41' }])
    expect([heard, live.live_state.value, again.mock.calls.length]).toEqual([['41'], 'open', 1])
  })
  it('waits longer after each failure, and never for the same time', () => {
    const random = vi.spyOn(Math, 'random').mockReturnValue(0.5)
    live.startLive()
    const waits: number[] = []
    for (let round = 0; round < 9; round += 1) {
      const before = FakeSocket.all.length
      newest().close()
      let waited = 0
      while (FakeSocket.all.length === before) {
        vi.advanceTimersByTime(125)
        waited += 125
      }
      waits.push(waited)
    }
    expect(waits.slice(0, 4)).toEqual([375, 750, 1500, 3000])
    expect(waits.at(-1)).toBe(15_000)
    random.mockReturnValue(0)
    const before = FakeSocket.all.length
    newest().close()
    vi.advanceTimersByTime(10_000)
    expect(FakeSocket.all.length).toBe(before + 1)
  })
  it('begins a channel anew when the server no longer knows its cursor', () => {
    const heard: string[] = []
    live.startLive()
    live.listen('deployments/dep_1', ({ type }) => heard.push(type), '7.9')
    newest().open()
    newest().tell('deployments/dep_1', null as unknown as string, 'error', { code: 'BAD_REQUEST' })
    expect(newest().sent).toEqual([
      { type: 'subscribe', channel: 'deployments/dep_1', after: '7.9' },
      { type: 'subscribe', channel: 'deployments/dep_1' },
    ])
    // What came meanwhile is gone: a log shows where.
    expect(heard).toEqual(['gap'])
  })
  it('listens once for all who want the same channel, until the last has left', () => {
    live.startLive()
    newest().open()
    const first = live.listen('apps/app_1', () => undefined)
    const second = live.listen('apps/app_1', () => undefined)
    first()
    expect(newest().sent.map(({ type }) => type)).toEqual(['subscribe'])
    second()
    expect(newest().sent.map(({ type }) => type)).toEqual(['subscribe', 'unsubscribe'])
  })
  it('goes on for who listens anew with the same function before the time before has ended', () => {
    const heard: unknown[] = []
    const [again, shut] = [vi.fn(), vi.fn()]
    const hear = ({ cursor }: { cursor: string | null }) => void heard.push(cursor)
    const begin = () => [live.listen('system', hear), live.onReopened(again), live.onShut(shut)]
    live.startLive()
    newest().open()
    const before = begin()
    begin()
    for (const end of before) end()
    newest().tell('system', '41')
    newest().close()
    vi.advanceTimersByTime(20_000)
    newest().close()
    vi.advanceTimersByTime(20_000)
    newest().open()
    expect([heard, again.mock.calls.length, shut.mock.calls.length]).toEqual([['41'], 1, 1])
  })
})
