import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createSlowStreams } from '#server/backups/slow-streams'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** A stream that moves so many bytes a second until it is ended. */
function begin(streaming: ReturnType<typeof createSlowStreams>, project_id: string, bytes = 0) {
  const leavePlace = vi.fn()
  let is_ended = false
  async function* source() {
    while (!is_ended) {
      yield new Uint8Array(bytes)
      await new Promise((resolve) => setTimeout(resolve, 1_000))
    }
  }
  const done = streaming({ leavePlace }, project_id, async (passing) => {
    for await (const _ of passing(source()));
  })
  const end = async () => {
    is_ended = true
    await vi.advanceTimersByTimeAsync(1_000)
    await done
  }
  return { left: () => leavePlace.mock.calls.length === 1, end }
}
const OPTIONS = { patience_ms: 10_000, worth_bytes: 1_000, most: 3 }
const later = () => vi.advanceTimersByTimeAsync(10_000)

it('a stream that moves keeps its place for as long as it does; one that hardly moves gives it to others', async () => {
  const streaming = createSlowStreams(OPTIONS)
  const fast = begin(streaming, 'prj_1', 200)
  const slow = begin(streaming, 'prj_2', 50)
  await later()
  await later()
  expect([fast.left(), slow.left()]).toEqual([false, true])
})

it('so many are without a place, two of one project; those beyond keep theirs until others have ended', async () => {
  const streaming = createSlowStreams(OPTIONS)
  const own = ['1', '2', '3'].map(() => begin(streaming, 'prj_mallory'))
  await later()
  expect(own.map(({ left }) => left())).toEqual([true, true, false])
  const others = ['prj_a', 'prj_b'].map((id) => begin(streaming, id))
  await later()
  expect(others.map(({ left }) => left())).toEqual([true, false])
  for (const { end } of own) await end()
  await later()
  expect(others.map(({ left }) => left())).toEqual([true, true])
})
