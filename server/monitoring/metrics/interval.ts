import { addWritten, type Latency, writeLatency } from './latency.ts'

/** Lengths of the intervals that are kept, in seconds, and for how long. Source: api.md "Monitoring". */
export const STEPS = [
  { step_s: 10, kept_s: 2 * 3600 },
  { step_s: 60, kept_s: 48 * 3600 },
  { step_s: 3600, kept_s: 90 * 86_400 },
] as const
export type StepSeconds = (typeof STEPS)[number]['step_s']

/** Numbers that are added up over the samples of an interval. */
export const SUMS = [
  'samples',
  'cpu',
  'memory',
  'net_in',
  'net_out',
  'instances',
  'disk_used',
  'disk_total',
  'memory_total',
  'load',
  'requests',
  'status_2xx',
  'status_3xx',
  'status_4xx',
  'status_5xx',
  'bytes_in',
  'bytes_out',
] as const
export const PEAKS = ['cpu_peak', 'memory_peak'] as const

type Numbers = Record<(typeof SUMS)[number] | (typeof PEAKS)[number], number | null>

/** A row of `metrics` without its subject and length. */
export interface Interval extends Numbers {
  /** Start, in seconds since 1970. */
  at: number
  samples: number
  latency: string | null
}

export const COLUMNS = ['at', ...SUMS, ...PEAKS, 'latency'] as const

/** An interval of nothing, to which others are added. */
export const emptyInterval = (at: number): Interval => ({ ...EMPTY, at })
const EMPTY: Interval = {
  ...(Object.fromEntries([...SUMS, ...PEAKS].map((column) => [column, null])) as Numbers),
  at: 0,
  samples: 0,
  latency: null,
}

/** The sum of intervals, with its latencies as counts rather than as text. */
export interface Total extends Omit<Interval, 'latency'> {
  latency: Latency
}

/** Adds intervals of one subject up to a longer one that begins at `at`. */
export function totalOf(at: number, parts: readonly Interval[]): Total {
  const total: Total = { ...EMPTY, at, latency: new Map() }
  for (const part of parts) {
    for (const column of SUMS) {
      const value = part[column]
      if (value !== null) total[column] = (total[column] ?? 0) + value
    }
    for (const column of PEAKS) {
      const value = part[column]
      if (value !== null) total[column] = Math.max(total[column] ?? 0, value)
    }
    addWritten(total.latency, part.latency)
  }
  return total
}

/** The same as it is kept. */
export function addUp(at: number, parts: readonly Interval[]): Interval {
  const total = totalOf(at, parts)
  return { ...total, latency: writeLatency(total.latency) }
}

export const startOf = (at_s: number, step_s: number): number => at_s - (at_s % step_s)
