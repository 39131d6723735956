import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import type { Log } from '#server/kernel/log'
import type { TrafficSample } from '#server/traffic/samples'
import type { HostReading } from '#server/platform/host/reading'
import { emptyInterval, type Interval, startOf } from './interval.ts'
import { fromCounts, writeLatency } from './latency.ts'
import type { MetricRepository, SubjectKind } from './repository.ts'

/** A container that runs for an app or a database. */
export interface SampledInstance {
  kind: 'app' | 'database'
  subject: string
  instance_id: string
}
export interface SampledUse {
  cpu_cores: number
  memory_bytes: number
  network_rx_bytes: number
  network_tx_bytes: number
}
export interface SamplerPorts {
  instances(): Promise<SampledInstance[]>
  /** What an instance uses; undefined when it does not run any more. */
  use(instance_id: string): Promise<SampledUse | undefined>
  host(): Promise<HostReading>
  /** Requests per app and ten seconds that began at or after a time. */
  traffic(from_ms: number): TrafficSample[]
}
export interface SamplerOptions {
  db: Db
  clock: Clock
  log: Log
  metrics: MetricRepository
  ports: SamplerPorts
}

/** Length of a sample. */
export const SAMPLE_S = 10
/** Containers that are asked at once, so that the engine stays free for deployments. */
const AT_ONCE = 4
/** The subject of the server itself. */
export const SERVER = 'server'

/** What changed since the last reading of a counter; a counter that began anew counts from zero. */
function createDeltas() {
  const last = new Map<string, number>()
  return {
    of(key: string, value: number): number | null {
      const before = last.get(key)
      last.set(key, value)
      if (before === undefined) return null
      return value >= before ? value - before : value
    },
    keep(keys: ReadonlySet<string>): void {
      for (const key of last.keys()) if (!keys.has(key.split(' ')[0]!)) last.delete(key)
    },
  }
}

const add = (sum: number | null, value: number | null): number | null =>
  value === null ? sum : (sum ?? 0) + value

async function eachOf<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items]
  const work = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await act(item)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
}

/** Takes one sample of everything every ten seconds. A sample that takes longer skips the next ones. */
export function createSampler({ db, clock, log, metrics, ports }: SamplerOptions) {
  const deltas = createDeltas()
  const readings = new Map<string, SampledUse & { at_ms: number }>()
  let host_before: { at_ms: number; busy_ms: number } | undefined
  let is_busy = false
  let traffic_from_ms = 0

  const sampleHost = async (at: number): Promise<Interval> => {
    const host = await ports.host()
    const now_ms = clock.monotonic_ms()
    const elapsed_ms = host_before ? now_ms - host_before.at_ms : 0
    const cpu =
      host_before && elapsed_ms > 0
        ? Math.round(((host.cpu_busy_ms - host_before.busy_ms) / elapsed_ms) * 1000)
        : null
    host_before = { at_ms: now_ms, busy_ms: host.cpu_busy_ms }
    return {
      ...emptyInterval(at),
      samples: 1,
      cpu,
      cpu_peak: cpu,
      memory: host.memory_used_bytes,
      memory_peak: host.memory_used_bytes,
      memory_total: host.memory_total_bytes,
      disk_used: host.disk_used_bytes,
      disk_total: host.disk_total_bytes,
      net_in: deltas.of(`${SERVER} in`, host.net_in_bytes),
      net_out: deltas.of(`${SERVER} out`, host.net_out_bytes),
      load: Math.round(host.load_1m * 100),
    }
  }

  type Sampled = { kind: SubjectKind; subject: string; interval: Interval }
  const sampleInstances = async (at: number, intervals: Map<string, Sampled>): Promise<void> => {
    const instances = await ports.instances()
    await eachOf(instances, async ({ kind, subject, instance_id }) => {
      const use = await ports.use(instance_id).catch(() => undefined)
      if (!use) return
      readings.set(instance_id, { ...use, at_ms: clock.now() })
      const found = intervals.get(subject) ?? {
        kind,
        subject,
        interval: { ...emptyInterval(at), samples: 1 },
      }
      intervals.set(subject, found)
      const { interval } = found
      const cpu = Math.round(use.cpu_cores * 1000)
      interval.cpu = add(interval.cpu, cpu)
      interval.cpu_peak = interval.cpu
      interval.memory = add(interval.memory, use.memory_bytes)
      interval.memory_peak = interval.memory
      interval.net_in = add(interval.net_in, deltas.of(`${instance_id} in`, use.network_rx_bytes))
      interval.net_out = add(interval.net_out, deltas.of(`${instance_id} out`, use.network_tx_bytes))
      interval.instances = add(interval.instances, 1)
    })
    const ids = new Set(instances.map(({ instance_id }) => instance_id))
    deltas.keep(new Set([SERVER, ...ids]))
    for (const id of readings.keys()) if (!ids.has(id)) readings.delete(id)
  }

  /** Requests of the interval before, which is complete by now; each is taken once. */
  const addTraffic = (at: number, intervals: Map<string, Sampled>): void => {
    const until_ms = at * 1000
    for (const sample of ports.traffic(traffic_from_ms)) {
      if (sample.from_ms >= until_ms) continue
      const found = intervals.get(sample.app_id) ?? {
        kind: 'app' as const,
        subject: sample.app_id,
        interval: { ...emptyInterval(at), samples: 1 },
      }
      intervals.set(sample.app_id, found)
      const { interval } = found
      const [, , ok, redirected, refused, failed] = sample.classes
      interval.requests = add(interval.requests, sample.requests)
      interval.status_2xx = add(interval.status_2xx, ok)
      interval.status_3xx = add(interval.status_3xx, redirected)
      interval.status_4xx = add(interval.status_4xx, refused)
      interval.status_5xx = add(interval.status_5xx, failed)
      interval.bytes_in = add(interval.bytes_in, sample.bytes_in)
      interval.bytes_out = add(interval.bytes_out, sample.bytes_out)
      interval.latency = writeLatency(fromCounts(sample.latency))
    }
    traffic_from_ms = until_ms
  }

  return {
    /** What an instance used when it was sampled last; undefined when it never was, or is gone. */
    reading: (instance_id: string) => readings.get(instance_id),
    /** Takes a sample now; resolves once it is written. Never throws. */
    async sample(): Promise<void> {
      if (is_busy) return
      is_busy = true
      try {
        const at = startOf(Math.floor(clock.now() / 1000), SAMPLE_S)
        const intervals = new Map<string, Sampled>()
        const server = await sampleHost(at)
        // Without the engine the server's own numbers and the edge's are still worth keeping.
        await sampleInstances(at, intervals).catch((error: unknown) =>
          log.debug('Instances cannot be sampled now', { error }),
        )
        addTraffic(at, intervals)
        db.tx(() => {
          metrics.write(metrics.number('server', SERVER), SAMPLE_S, server)
          for (const { kind, subject, interval } of intervals.values())
            metrics.write(metrics.number(kind, subject), SAMPLE_S, interval)
        })
      } catch (error) {
        log.warn('No sample could be taken', { error })
      } finally {
        is_busy = false
      }
    },
  }
}
export type Sampler = ReturnType<typeof createSampler>
