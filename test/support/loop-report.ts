import { existsSync, readFileSync } from 'node:fs'
import type { Stall } from '#server/kernel/stalls'

export interface SeenStall extends Stall {
  /** Where the code was, the innermost first; for long ones. */
  frames: string[]
}
/** What the probe beside a server saw of its main thread. */
export interface LoopReport {
  /** Delay of the event loop by the thread's own work, as somebody finds it who comes at any moment. */
  p99_ms: number
  max_ms: number
  ticks: number
  /** Those with the most work of the thread, the longest first. */
  stalls: SeenStall[]
}

/** Nobody may wait longer in 99 of 100 cases. */
export const LIMIT_MS = 200
/**
 * No single piece of work may take longer either. The bar is 50 ms, and `LOOP_PIECE_MS=50` holds a quiet machine to
 * it; processor time of a crowded one counts for several of its own.
 */
const PIECE_MS = Number(process.env.LOOP_PIECE_MS ?? 300)
/** Half a minute: in less, one library that is loaded at its first use is more than a hundredth of the time. */
const ENOUGH_TICKS = 1_200

export function readLoopReport(file: string): LoopReport | undefined {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as LoopReport) : undefined
}

/** Of a stall, what the thread itself worked; the rest it waited for the machine. */
export const ownWork = ({ stalled_ms, worked_ms }: Stall) => Math.min(stalled_ms, worked_ms)

const emit = ({ stalled_ms, worked_ms, calls, frames }: SeenStall) =>
  `${stalled_ms} ms (${worked_ms} ms of work) during ${calls.join(', ') || 'nothing named'}${frames.length > 0 ? `\n    at ${frames.join('\n    at ')}` : ''}`

/** What a server did wrong with its main thread, with the calls; undefined when it answered in time. */
export function loopFault({ p99_ms, ticks, stalls }: LoopReport): string | undefined {
  const long = stalls.filter((stall) => ownWork(stall) > PIECE_MS)
  const slow = ticks >= ENOUGH_TICKS && p99_ms > LIMIT_MS
  if (!slow && long.length === 0) return undefined
  const shown = long.length > 0 ? long : stalls
  return `The main thread answered nobody: the event loop's delay is ${p99_ms} ms at the 99th percentile.\n${shown.map(emit).join('\n')}`
}
