import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { guardLayer } from '#server/platform/engine/containers/layer-guard'
import type { EngineError } from '#server/platform/engine/engine'

const MIB = 1024 ** 2

let bytes: number | Error
let full: boolean
let walks: number
let told: EngineError[]
let guard: { stop(): void }
beforeEach(() => {
  vi.useFakeTimers()
  bytes = 0
  full = false
  walks = 0
  told = []
  guard = guardLayer({
    limit_bytes: 100 * MIB,
    async measure() {
      walks += 1
      if (bytes instanceof Error) throw bytes
      return bytes
    },
    isDiskFull: async () => full,
    onExcess: (reason) => told.push(reason),
  })
})
afterEach(() => {
  guard.stop()
  vi.useRealTimers()
})
const codes = () => told.map(({ code }) => code)

test('a short command is not walked, and a long one is ended once it passes the limit', async () => {
  bytes = 101 * MIB
  await vi.advanceTimersByTimeAsync(14_000)
  expect(walks).toBe(0)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(codes()).toEqual(['disk_exceeded'])
  expect(walks).toBe(1)
})

test('a command within the limit goes on, and is walked four times a minute', async () => {
  bytes = 100 * MIB
  await vi.advanceTimersByTimeAsync(61_000)
  expect([codes(), walks]).toEqual([[], 4])
})

test('on a full disk a command is looked at at once, and ended only where it wrote much', async () => {
  full = true
  bytes = 64 * MIB
  await vi.advanceTimersByTimeAsync(1_000)
  expect(codes()).toEqual([])
  bytes = 65 * MIB
  await vi.advanceTimersByTimeAsync(1_000)
  expect(codes()).toEqual(['disk_full'])
})

test('what cannot be measured is measured the next time, and a command that ended is not told of', async () => {
  bytes = new Error('The engine is busy.')
  await vi.advanceTimersByTimeAsync(16_000)
  expect(walks).toBeGreaterThan(0)
  bytes = 200 * MIB
  guard.stop()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(codes()).toEqual([])
})
