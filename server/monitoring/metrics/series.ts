import { ApiError } from '#server/kernel/errors'
import { type Interval, STEPS, type StepSeconds, startOf, type Total, totalOf } from './interval.ts'
import { percentileOf, readLatency } from './latency.ts'
import type { MetricRepository } from './repository.ts'

/** A page draws no more points than this. */
const MOST_POINTS = 720

export interface SeriesQuery {
  /** ISO times; the last hour when absent. */
  from?: string
  to?: string
  /** Length of a point in seconds; chosen by the range when absent. */
  step?: number
}

/** What a point of a series tells of an interval as it is kept. */
export const pointOf = (interval: Interval, step_s: number): Point =>
  describe({ ...interval, latency: readLatency(interval.latency) }, step_s)

/** Averages and rates over the interval. */
function describe(interval: Total, step_s: number) {
  const { samples, latency } = interval
  const average = (sum: number | null, scale = 1) => (sum === null ? null : sum / samples / scale)
  return {
    at: new Date(interval.at * 1000).toISOString(),
    cpu_cores: average(interval.cpu, 1000),
    cpu_cores_peak: interval.cpu_peak === null ? null : interval.cpu_peak / 1000,
    memory_bytes: round(average(interval.memory)),
    memory_bytes_peak: interval.memory_peak,
    memory_total_bytes: round(average(interval.memory_total)),
    network_in_bytes: interval.net_in,
    network_out_bytes: interval.net_out,
    instances: average(interval.instances),
    disk_used_bytes: round(average(interval.disk_used)),
    disk_total_bytes: round(average(interval.disk_total)),
    load_1m: average(interval.load, 100),
    requests: interval.requests,
    requests_per_second: interval.requests === null ? null : interval.requests / step_s,
    status_2xx: interval.status_2xx,
    status_3xx: interval.status_3xx,
    status_4xx: interval.status_4xx,
    status_5xx: interval.status_5xx,
    bytes_in: interval.bytes_in,
    bytes_out: interval.bytes_out,
    latency_p50_ms: percentileOf(latency, 0.5),
    latency_p95_ms: percentileOf(latency, 0.95),
    latency_p99_ms: percentileOf(latency, 0.99),
  }
}
const round = (value: number | null) => (value === null ? null : Math.round(value))
export type Point = ReturnType<typeof describe>

/** The shortest intervals that are still kept for the whole range. */
function sourceFor(from_s: number, now_s: number): StepSeconds {
  return STEPS.find(({ kept_s }) => from_s >= now_s - kept_s)?.step_s ?? 3600
}

/** What is wrong with a query is a 400, as with everything else in one. */
function notBefore(): ApiError {
  const detail = { path: 'from', message: 'must be before `to`.' }
  return new ApiError('BAD_REQUEST', `${detail.path}: ${detail.message}`, [detail])
}

/** The metrics of one subject over time. */
export function readSeries(
  metrics: MetricRepository,
  subject: number | undefined,
  query: SeriesQuery,
  now_ms: number,
) {
  const now_s = Math.floor(now_ms / 1000)
  const to_s = query.to === undefined ? now_s : Math.floor(Date.parse(query.to) / 1000)
  const from_s =
    query.from === undefined ? Math.max(0, to_s - 3600) : Math.floor(Date.parse(query.from) / 1000)
  if (from_s >= to_s) throw notBefore()
  const source = sourceFor(from_s, now_s)
  const least = Math.max(query.step ?? 0, Math.ceil((to_s - from_s) / MOST_POINTS), source)
  const step_s = Math.ceil(least / source) * source
  const rows = subject === undefined ? [] : metrics.range(subject, source, startOf(from_s, step_s), to_s)
  const groups = Map.groupBy(rows, ({ at }) => startOf(at, step_s))
  return {
    from: new Date(from_s * 1000).toISOString(),
    to: new Date(to_s * 1000).toISOString(),
    step_s,
    points: [...groups].map(([at, parts]) => describe(totalOf(at, parts), step_s)),
  }
}
