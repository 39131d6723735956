import { afterEach, describe, expect, it, vi } from 'vitest'
import { createCalls } from '#server/kernel/calls'
import type { Log } from '#server/kernel/log'
import { type Stall, STALLS, watchStalls } from '#server/kernel/stalls'

afterEach(() => void vi.useRealTimers())

/** A watch on a clock of its own, and what it tells. */
function watched() {
  vi.useFakeTimers()
  const time = { now: 0, worked: 0 }
  const calls = createCalls({ monotonic_ms: () => time.now })
  const told: Stall[] = []
  const warned: string[] = []
  const hear = (stall: unknown) => void told.push(stall as Stall)
  STALLS.subscribe(hear)
  const log = { warn: (text: string) => void warned.push(text) } as unknown as Log
  const end = watchStalls({ log, calls, now: () => time.now, worked: () => time.worked })
  return {
    calls,
    told,
    warned,
    /** The next look comes so much later, of which the thread worked a part. */
    beat(late_ms: number, worked_ms = 0) {
      time.now += 50 + late_ms
      time.worked += worked_ms
      vi.advanceTimersByTime(50)
    },
    end() {
      end()
      STALLS.unsubscribe(hear)
    },
  }
}

describe('a main thread that answers nobody', () => {
  it('is told with what was under way, also when that has ended meanwhile, and not with what ended before', async () => {
    const { calls, told, beat, end } = watched()
    await calls.run('before', () => {})
    beat(0)
    await calls.run('POST /api/apps/detect', () => {})
    const under_way = calls.run('deploy.clone', () => new Promise<void>(() => {}))
    void under_way
    beat(120, 110)
    expect(told).toEqual([
      { stalled_ms: 120, worked_ms: 110, calls: ['POST /api/apps/detect', 'deploy.clone'] },
    ])
    end()
  })
  it('is in the log once clients notice it, and never for a little', () => {
    const { told, warned, beat, end } = watched()
    beat(40)
    expect(told).toEqual([])
    beat(200)
    expect([told.length, warned]).toEqual([1, []])
    beat(300, 290)
    expect(warned).toEqual(['The main thread was busy and answered nobody'])
    end()
  })
  it('is not called busy where it hardly worked, since the machine kept it waiting', () => {
    const { warned, beat, end } = watched()
    beat(800, 35)
    expect(warned).toEqual([
      'The main thread answered nobody: it waited for a processor or a disk that others kept busy',
    ])
    end()
  })
  it('forgets calls, however many there are', async () => {
    const calls = createCalls({ monotonic_ms: () => 0 })
    for (let at = 0; at < 1000; at++) await calls.run(`call ${at}`, () => {})
    await expect(calls.run('failing', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(calls.since(0)).toHaveLength(64)
    expect(calls.since(0)).toContain('failing')
  })
})
