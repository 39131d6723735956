import type { StepContext } from '#server/kernel/jobs/definition'

/** A place stands for a core that packs; what moves less in this time does not need one. */
const PATIENCE_MS = 60_000
const WORTH_A_PLACE_BYTES = 64 * 1024 ** 2
/** Streams without a place, of all projects and of one: each has a container, or a connection and its buffers. */
const MOST = 32
const MOST_OF_PROJECT = 2

type Step = Pick<StepContext<unknown, unknown>, 'leavePlace'>
/** Notes what goes through a stream. */
export type Passing = (source: AsyncIterable<Uint8Array>) => AsyncGenerator<Uint8Array>

/**
 * Copies and restores on their way. A database or a destination decides how fast one is, and
 * whoever holds a lock in each of two projects held both places of the installation for a day: one
 * that hardly moves gives its place to others, and goes on.
 */
export function createSlowStreams({
  patience_ms = PATIENCE_MS,
  worth_bytes = WORTH_A_PLACE_BYTES,
  most = MOST,
} = {}) {
  /** Streams without a place, by project. */
  const slow = new Map<string, number>()
  const countOf = (project_id: string) => slow.get(project_id) ?? 0
  function hasRoom(project_id: string): boolean {
    const all = [...slow.values()].reduce((sum, count) => sum + count, 0)
    return all < most && countOf(project_id) < MOST_OF_PROJECT
  }
  return async function streaming<T>(
    { leavePlace }: Step,
    project_id: string,
    work: (passing: Passing) => Promise<T>,
  ): Promise<T> {
    let bytes = 0
    let has_left = false
    const look = () => {
      const is_slow = bytes < worth_bytes
      bytes = 0
      if (!is_slow || !hasRoom(project_id)) return
      clearInterval(timer)
      has_left = true
      slow.set(project_id, countOf(project_id) + 1)
      leavePlace()
    }
    const timer = setInterval(look, patience_ms)
    async function* passing(source: AsyncIterable<Uint8Array>) {
      for await (const chunk of source) {
        bytes += chunk.byteLength
        yield chunk
      }
    }
    try {
      return await work(passing)
    } finally {
      clearInterval(timer)
      if (has_left) slow.set(project_id, countOf(project_id) - 1)
      if (countOf(project_id) === 0) slow.delete(project_id)
    }
  }
}
export type SlowStreams = ReturnType<typeof createSlowStreams>
