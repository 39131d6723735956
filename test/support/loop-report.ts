import { existsSync, readFileSync } from 'node:fs'
import type { Stall } from '#server/kernel/stalls'

export interface SeenStall extends Stall {
  /** Where the code was, the innermost first; for long ones. */
  frames: string[]
}
/** What the probe beside a server saw of its main thread. */
export interface LoopReport {
  /** Delay of the event loop beyond what its timer has anyway. */
  p99_ms: number
  max_ms: number
  ticks: number
  stalls: SeenStall[]
}

/** Nobody may wait longer in 99 of 100 cases. */
export const LIMIT_MS = 200
/** No single piece of work may take longer by its own work, on a machine that has much else to do. */
const PIECE_MS = 600
/** A percentile of fewer says nothing. */
const ENOUGH_TICKS = 500

export function readLoopReport(file: string): LoopReport | undefined {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as LoopReport) : undefined
}

const tell = ({ stalled_ms, worked_ms, calls, frames }: SeenStall) =>
  `${stalled_ms} ms (${worked_ms} ms of work) during ${calls.join(', ') || 'nothing named'}${frames.length > 0 ? `\n    at ${frames.join('\n    at ')}` : ''}`

/** What a server did wrong with its main thread, with the calls; undefined when it answered in time. */
export function loopFault({ p99_ms, ticks, stalls }: LoopReport): string | undefined {
  const long = stalls.filter(({ stalled_ms, worked_ms }) => Math.min(stalled_ms, worked_ms) > PIECE_MS)
  // On a machine that is busy with other things the thread waits for its turn without doing anything.
  const sum = (pick: (stall: SeenStall) => number) => stalls.reduce((total, stall) => total + pick(stall), 0)
  const is_own = sum(({ worked_ms }) => worked_ms) > sum(({ stalled_ms }) => stalled_ms) / 2
  const slow = ticks >= ENOUGH_TICKS && p99_ms > LIMIT_MS && is_own
  if (!slow && long.length === 0) return undefined
  const shown = long.length > 0 ? long : stalls
  return `The main thread answered nobody: the event loop's delay is ${p99_ms} ms at the 99th percentile.\n${shown.map(tell).join('\n')}`
}
