import type { Interval } from '../metrics/interval.ts'
import { percentileOf, readLatency } from '../metrics/latency.ts'

/** What a rule can watch, with how it is read from an interval. */
const READERS = {
  cpu_cores: ({ cpu, samples }: Interval) => (cpu === null ? null : cpu / samples / 1000),
  memory_bytes: ({ memory, samples }: Interval) => (memory === null ? null : memory / samples),
  memory_percent: ({ memory, memory_total }: Interval) =>
    memory !== null && memory_total ? (memory / memory_total) * 100 : null,
  disk_percent: ({ disk_used, disk_total }: Interval) =>
    disk_used !== null && disk_total ? (disk_used / disk_total) * 100 : null,
  load_1m: ({ load, samples }: Interval) => (load === null ? null : load / samples / 100),
  instances: ({ instances, samples }: Interval) => (instances === null ? null : instances / samples),
  requests_per_second: ({ requests, samples }: Interval) => (requests ?? 0) / (samples * 10),
  error_percent: ({ requests, status_5xx }: Interval) =>
    requests ? ((status_5xx ?? 0) / requests) * 100 : null,
  latency_p95_ms: ({ latency }: Interval) => percentileOf(readLatency(latency), 0.95),
} satisfies Record<string, (interval: Interval) => number | null>

export type AlertMetric = keyof typeof READERS
export const ALERT_METRICS = Object.keys(READERS) as AlertMetric[]

/** What is sampled of each kind of subject: a rule about anything else would watch for ever and see nothing. */
const MEASURED: Readonly<Record<'server' | 'app' | 'database', readonly AlertMetric[]>> = {
  server: ['cpu_cores', 'memory_bytes', 'memory_percent', 'disk_percent', 'load_1m'],
  app: ['cpu_cores', 'memory_bytes', 'instances', 'requests_per_second', 'error_percent', 'latency_p95_ms'],
  database: ['cpu_cores', 'memory_bytes', 'instances'],
}

/** Why a metric cannot be watched of this kind of subject; undefined when it can. */
export function unmeasured(kind: keyof typeof MEASURED, metric: AlertMetric): string | undefined {
  if (MEASURED[kind].includes(metric)) return undefined
  const subject = kind === 'server' ? 'the server' : `${kind === 'app' ? 'an' : 'a'} ${kind}`
  return `is not measured of ${subject}, of which there are: ${MEASURED[kind].join(', ')}.`
}

/** Value of a metric in an interval; null when the subject has none. */
export const readMetric = (metric: AlertMetric, interval: Interval): number | null =>
  READERS[metric](interval)

export const isBeyond = (value: number, comparison: 'above' | 'below', threshold: number): boolean =>
  comparison === 'above' ? value > threshold : value < threshold
