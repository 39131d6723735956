import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createSlowClones } from '#server/deployments/slow-clones'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const PATIENCE = { patience_ms: 1_000, most: 3 }
/** A clone that ends by its signal alone, as one whose host drips. */
function hang(fetchFor: ReturnType<typeof createSlowClones>, project_id: string) {
  const leavePlace = vi.fn()
  const stop = new AbortController()
  const outcome = vi.fn()
  const step = { payload: { project_id }, leavePlace, signal: stop.signal }
  void fetchFor(
    step,
    (signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('git was ended')), { once: true })
      }),
  ).catch((error: { code?: string; message: string }) => outcome(error.code ?? error.message))
  return { leavePlace, outcome, stop }
}

it('a clone that is done in time keeps its place, and one that is not gives it to others', async () => {
  const fetchFor = createSlowClones(PATIENCE)
  const leavePlace = vi.fn()
  const step = { payload: { project_id: 'prj_1' }, leavePlace, signal: new AbortController().signal }
  expect(await fetchFor(step, async () => 'source')).toBe('source')
  const slow = hang(fetchFor, 'prj_1')
  await vi.advanceTimersByTimeAsync(999)
  expect(slow.leavePlace).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(1)
  expect(slow.leavePlace).toHaveBeenCalledTimes(1)
  expect([leavePlace.mock.calls, slow.outcome.mock.calls]).toEqual([[], []])
})

it('of too many slow ones that ends which goes on for longest, of the project with most', async () => {
  const fetchFor = createSlowClones(PATIENCE)
  const ada = hang(fetchFor, 'prj_ada')
  await vi.advanceTimersByTimeAsync(100)
  const mallory = ['1', '2', '3'].map(() => hang(fetchFor, 'prj_mallory'))
  await vi.advanceTimersByTimeAsync(1_000)
  const outcomes = mallory.map(({ outcome }) => outcome.mock.calls.flat())
  expect(outcomes).toEqual([['git_timeout'], [], []])
  expect(ada.outcome).not.toHaveBeenCalled()
  // Each that comes costs one, never more.
  hang(fetchFor, 'prj_mallory')
  await vi.advanceTimersByTimeAsync(1_000)
  expect(mallory.map(({ outcome }) => outcome.mock.calls.flat())).toEqual([
    ['git_timeout'],
    ['git_timeout'],
    [],
  ])
})

it('a clone that is stopped from outside ends as what it was stopped by', async () => {
  const slow = hang(createSlowClones(PATIENCE), 'prj_1')
  await vi.advanceTimersByTimeAsync(2_000)
  slow.stop.abort()
  await vi.advanceTimersByTimeAsync(0)
  expect(slow.outcome).toHaveBeenCalledWith('git was ended')
})

it('a clone that has ended takes no place among the slow ones, however it ended', async () => {
  const fetchFor = createSlowClones(PATIENCE)
  const ended = ['1', '2', '3'].map((n) => hang(fetchFor, `prj_${n}`))
  await vi.advanceTimersByTimeAsync(2_000)
  for (const { stop } of ended) stop.abort()
  // Were they counted, there would be too many, and most of them of this project.
  const others = ['1', '2', '3'].map(() => hang(fetchFor, 'prj_1'))
  await vi.advanceTimersByTimeAsync(2_000)
  expect(others.flatMap(({ outcome }) => outcome.mock.calls)).toEqual([])
})
