import type { Clock } from './clock.ts'

/** A piece of work with a name that tells an operator what it is: `POST /api/apps`, `deploy.clone`. */
interface Call {
  name: string
  ended_ms?: number
}

/** Calls that ended lately; more are not needed to say what kept everybody waiting. */
const REMEMBERED = 64

/** What is under way in this process and what ended lately, for whoever asks why it was busy. */
export function createCalls(clock: Pick<Clock, 'monotonic_ms'>) {
  const open = new Set<Call>()
  const ended: Call[] = []
  const end = (call: Call) => {
    open.delete(call)
    call.ended_ms = clock.monotonic_ms()
    ended.push(call)
    if (ended.length > REMEMBERED) ended.shift()
  }
  return {
    /** Does some work under a name. */
    async run<T>(name: string, work: () => Promise<T> | T): Promise<T> {
      const call: Call = { name }
      open.add(call)
      try {
        return await work()
      } finally {
        end(call)
      }
    },
    /** Names of calls that were under way at a time or later. */
    since: (at_ms: number): string[] => [
      ...new Set([...ended.filter(({ ended_ms }) => ended_ms! >= at_ms), ...open].map(({ name }) => name)),
    ],
  }
}
export type Calls = ReturnType<typeof createCalls>

/** Those of this process. */
export const CALLS: Calls = createCalls({ monotonic_ms: () => performance.now() })
