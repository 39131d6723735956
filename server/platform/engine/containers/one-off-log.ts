import { setTimeout as wait } from 'node:timers/promises'
import { type Allowance, type Budget, createBudget } from '#server/kernel/budget'
import type { Connection } from '../connection.ts'
import type { LogLine, RunOnceSpec } from '../engine.ts'
import type { Containers } from './containers.ts'
import { containerLogs } from './logs.ts'
import { initError } from './start-failure.ts'

/** After the end of a command, its last lines may take this long to arrive. */
export const LOG_TAIL_MS = 3_000
/** What one command, and all together, may print for long without anything being left out, in bytes. */
const PACE = { at_once: 8 * 1024 * 1024, per_second: 1024 * 1024 }
const PACE_OF_ALL = { at_once: 32 * 1024 * 1024, per_second: 4 * 1024 * 1024 }
/** What a line costs beside its text. */
const LINE_BYTES = 200
const PAUSE_MS = 100
/** Of a command that has printed more than was read by its end: its last lines. */
const LAST_LINES = 1_000

const budgetOf = (allowance: Allowance): Budget =>
  createBudget({ monotonic_ms: () => performance.now() }, allowance)

interface Source {
  connection: Connection
  containers: Containers
}

/**
 * Hands on what commands print, at a pace that nobody else feels: a command may print for a day, as
 * fast as it can, and each line is looked through for secrets.
 */
export function createOneOffLogs({ connection, containers }: Source) {
  const all = budgetOf(PACE_OF_ALL)
  const lines = (id: string, options: Parameters<typeof containerLogs>[3], signal?: AbortSignal) =>
    containerLogs(connection, containers, id, options, signal)

  return function logOf(id: string, onLog: RunOnceSpec['onLog']) {
    const own = budgetOf(PACE)
    let last: LogLine | undefined
    let is_whole = false
    const isLeft = () => own.isLeft() && all.isLeft()
    const hand = (line: LogLine) => {
      const failure = initError(line.text)
      if (failure) throw failure
      last = line
      onLog(line)
      for (const budget of [own, all]) budget.spend(line.text.length + LINE_BYTES)
    }
    return {
      /** Until the container has ended and its log is read, or the signal aborts. */
      async follow(signal: AbortSignal): Promise<void> {
        for await (const line of lines(id, { follow: true, until_exit: true }, signal)) {
          hand(line)
          while (!isLeft() && !signal.aborted) await wait(PAUSE_MS)
        }
        is_whole = !signal.aborted
      },
      /** The last lines of a command that has ended before all of them could be read. */
      async finish(): Promise<void> {
        if (is_whole) return
        const { at } = last ?? { at: '' }
        const found: LogLine[] = []
        const signal = AbortSignal.timeout(LOG_TAIL_MS)
        for await (const line of lines(id, { tail: LAST_LINES }, signal)) if (line.at > at) found.push(line)
        if (found.length === LAST_LINES)
          onLog({
            at: found[0]!.at,
            stream: 'stderr',
            text: 'More is printed than can be kept: lines were left out here.',
          })
        found.forEach(onLog)
      },
    }
  }
}
