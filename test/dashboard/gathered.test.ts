import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { effectScope } from 'vue'
import { useGathered } from '@/lib/gathered'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('what comes within a moment is drawn once, and no timer runs while nothing comes', () => {
  const draw = vi.fn()
  const scope = effectScope()
  const ask = scope.run(() => useGathered(draw))!
  expect(vi.getTimerCount()).toBe(0)
  for (let at = 0; at < 100; at += 1) ask()
  vi.runAllTimers()
  ask()
  vi.runAllTimers()
  expect([draw.mock.calls.length, vi.getTimerCount()]).toEqual([2, 0])
  ask()
  scope.stop()
  vi.runAllTimers()
  expect(draw).toHaveBeenCalledTimes(2)
})
