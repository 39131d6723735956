import type { EdgeRequest } from '#server/platform/ingress/ingress'
import { LATENCY_BOUNDS_MS } from './schema.ts'

/** The requests of one app in ten seconds, by the time of their end. */
export interface TrafficSample {
  app_id: string
  /** Start of the ten seconds, in milliseconds since 1970. */
  from_ms: number
  requests: number
  /** Answers by the first digit of their status; index 0 counts what ended without one. */
  classes: [number, number, number, number, number, number]
  bytes_in: number
  bytes_out: number
  /**
   * How many requests waited how long for the app's answer, by LATENCY_BOUNDS_MS; the last counts the longer
   * ones.
   */
  latency: number[]
}

export const SAMPLE_MS = 10_000
/** So long a sample is kept for whoever collects it. */
const KEPT_MS = 120_000

/** Counts requests per app and ten seconds; what is older than two minutes is forgotten. */
export interface TrafficSamples {
  count(request: EdgeRequest): void
  /** Samples that began at or after a time, oldest first. */
  since(from_ms: number): TrafficSample[]
  /** What an app had in the last ten seconds that are complete. */
  lastPeriod(app_id: string): { requests: number; latency_p95_ms: number | null }
  /** What an app had in the last minute, as one sample. */
  lastMinute(app_id: string): TrafficSample
  forget(app_id: string): void
}

/**
 * How long the client waited until the app began to answer; an upgraded connection says nothing about that.
 */
function latencyOf(request: EdgeRequest): number | undefined {
  if (request.status === 101) return undefined
  return request.response_ms === null
    ? request.total_ms
    : (request.queue_ms ?? 0) + (request.connect_ms ?? 0) + request.response_ms
}
const emptySample = (app_id: string, from_ms: number): TrafficSample => ({
  app_id,
  from_ms,
  requests: 0,
  classes: [0, 0, 0, 0, 0, 0],
  bytes_in: 0,
  bytes_out: 0,
  latency: Array.from({ length: LATENCY_BOUNDS_MS.length + 1 }, () => 0),
})

/**
 * The latency that a share of the requests did not exceed, in milliseconds: the upper end of its class;
 * undefined without requests.
 */
export function percentile({ latency }: Pick<TrafficSample, 'latency'>, share: number): number | undefined {
  const total = latency.reduce((sum, number) => sum + number, 0)
  if (total === 0) return undefined
  let seen = 0
  const index = latency.findIndex((number) => (seen += number) >= total * share)
  return LATENCY_BOUNDS_MS[Math.min(index, LATENCY_BOUNDS_MS.length - 1)]
}

export function createTrafficSamples(now: () => number): TrafficSamples {
  const slots = new Map<number, Map<string, TrafficSample>>()
  const prune = () => {
    for (const from_ms of slots.keys()) if (from_ms < now() - KEPT_MS) slots.delete(from_ms)
  }
  return {
    count(request) {
      const ended_ms = Math.min(request.at_ms + request.total_ms, now())
      const from_ms = ended_ms - (ended_ms % SAMPLE_MS)
      if (from_ms < now() - KEPT_MS) return
      if (!slots.has(from_ms)) prune()
      const slot = slots.get(from_ms) ?? new Map<string, TrafficSample>()
      slots.set(from_ms, slot)
      const sample = slot.get(request.app_id) ?? emptySample(request.app_id, from_ms)
      slot.set(request.app_id, sample)
      sample.requests++
      const group = Math.floor(request.status / 100)
      sample.classes[group >= 1 && group <= 5 ? (group as 1) : 0]++
      sample.bytes_in += request.bytes_in
      sample.bytes_out += request.bytes_out
      const latency = latencyOf(request)
      if (latency === undefined) return
      const index = LATENCY_BOUNDS_MS.findIndex((bound) => latency <= bound)
      sample.latency[index < 0 ? LATENCY_BOUNDS_MS.length : index]!++
    },
    since: (from_ms) =>
      [...slots]
        .filter(([start]) => start >= from_ms)
        .sort(([a], [b]) => a - b)
        .flatMap(([, slot]) => [...slot.values()]),
    lastPeriod(app_id) {
      const from_ms = now() - (now() % SAMPLE_MS) - SAMPLE_MS
      const sample = slots.get(from_ms)?.get(app_id)
      return {
        requests: sample?.requests ?? 0,
        latency_p95_ms: (sample && percentile(sample, 0.95)) ?? null,
      }
    },
    lastMinute(app_id) {
      const from_ms = now() - 60_000
      const total = emptySample(app_id, from_ms)
      for (const [start, slot] of slots) {
        const sample = slot.get(app_id)
        if (start < from_ms || !sample) continue
        total.requests += sample.requests
        total.bytes_in += sample.bytes_in
        total.bytes_out += sample.bytes_out
        sample.classes.forEach((number, index) => {
          total.classes[index as 0] += number
        })
        sample.latency.forEach((number, index) => {
          total.latency[index]! += number
        })
      }
      return total
    },
    forget(app_id) {
      for (const slot of slots.values()) slot.delete(app_id)
    },
  }
}
