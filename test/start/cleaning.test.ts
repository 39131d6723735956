import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createLog } from '#server/kernel/log'
import { cleanWhenQuiet } from '#server/start/cleaning'

const MINUTE = 60_000
const MIB = 2 ** 20

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A heap of which a cleaning leaves 16 MiB. */
function heapOf(used_bytes: number) {
  const heap = { used: used_bytes, share: 0, cleanings: 0 }
  const end = cleanWhenQuiet({
    log: createLog('text', 'error'),
    worked: () => heap.share,
    used: () => heap.used,
    clean: () => {
      heap.cleanings += 1
      heap.used = 16 * MIB
    },
  })
  return { heap, end }
}

it('what a start left is cleaned up in the first quiet moment, and not while somebody is served', () => {
  const { heap } = heapOf(21 * MIB)
  heap.share = 0.2
  vi.advanceTimersByTime(MINUTE)
  expect(heap.cleanings).toBe(0)
  heap.share = 0.01
  vi.advanceTimersByTime(4000)
  expect(heap).toMatchObject({ cleanings: 1, used: 16 * MIB })
})

it('it is cleaned up again when enough has gathered, but not within five minutes', () => {
  const { heap } = heapOf(21 * MIB)
  vi.advanceTimersByTime(4000)
  heap.used = 20 * MIB
  vi.advanceTimersByTime(4 * MINUTE)
  expect(heap.cleanings).toBe(1)
  vi.advanceTimersByTime(MINUTE)
  expect(heap.cleanings).toBe(2)
  heap.used = 17 * MIB
  vi.advanceTimersByTime(60 * MINUTE)
  expect(heap.cleanings).toBe(2)
})

it('what a busy time left is cleaned up in the first quiet moment after it', () => {
  const { heap } = heapOf(21 * MIB)
  vi.advanceTimersByTime(4000)
  heap.used = 30 * MIB
  heap.share = 0.9
  vi.advanceTimersByTime(MINUTE)
  expect(heap.cleanings).toBe(1)
  heap.share = 0.01
  vi.advanceTimersByTime(2000)
  expect(heap).toMatchObject({ cleanings: 2, used: 16 * MIB })
})

it('many short busy times within five minutes are cleaned up after twice, not after each', () => {
  const { heap } = heapOf(21 * MIB)
  vi.advanceTimersByTime(4000)
  for (let times = 0; times < 20; times += 1) {
    heap.used = 30 * MIB
    heap.share = 0.5
    vi.advanceTimersByTime(4000)
    heap.share = 0.01
    vi.advanceTimersByTime(6000)
  }
  expect(heap.cleanings).toBe(2)
})

it('a server that ended cleans nothing up', () => {
  const { heap, end } = heapOf(21 * MIB)
  end()
  vi.advanceTimersByTime(MINUTE)
  expect(heap.cleanings).toBe(0)
})
