import { setTimeout as wait } from 'node:timers/promises'
import type { Connection } from '../connection.ts'
import type { InstanceStats } from '../engine.ts'

/** Without an earlier sample to compare with, a second one is taken after this time. */
const FIRST_INTERVAL_MS = 250
/** An earlier sample older than this says little about now. */
const SAMPLE_AGE_LIMIT_MS = 5 * 60_000
const SAMPLES_LIMIT = 2_000

interface RawStats {
  read?: string
  cpu_stats?: { cpu_usage?: { total_usage?: number } }
  memory_stats?: {
    usage?: number
    stats?: { inactive_file?: number; total_inactive_file?: number }
  }
  networks?: Record<string, { rx_bytes?: number; tx_bytes?: number }>
}
interface Sample {
  at_ms: number
  cpu_ns: number
}

/**
 * Samples resource use. The processor share is measured between two calls, so that a call need not wait for
 * an interval.
 */
export function createStats(connection: Connection) {
  const earlier = new Map<string, Sample>()

  async function read(id: string): Promise<{ raw: RawStats; sample: Sample } | undefined> {
    const raw = await connection.call<RawStats | undefined>({
      path: `/containers/${encodeURIComponent(id)}/stats`,
      query: { stream: false, 'one-shot': true },
      accept: [404, 409],
    })
    const cpu_ns = raw?.cpu_stats?.cpu_usage?.total_usage
    // A container that does not run answers with zeros and the year one.
    if (!raw || !cpu_ns || !raw.read || raw.read.startsWith('0001')) return undefined
    return { raw, sample: { at_ms: Date.parse(raw.read), cpu_ns } }
  }

  return async function stats(id: string): Promise<InstanceStats | undefined> {
    let current = await read(id)
    let before = earlier.get(id)
    const usable = (sample: Sample, now: Sample) =>
      now.at_ms > sample.at_ms &&
      now.at_ms - sample.at_ms < SAMPLE_AGE_LIMIT_MS &&
      now.cpu_ns >= sample.cpu_ns
    if (current && !(before && usable(before, current.sample))) {
      before = current.sample
      await wait(FIRST_INTERVAL_MS)
      current = await read(id)
    }
    if (!current) {
      earlier.delete(id)
      return undefined
    }
    if (earlier.size >= SAMPLES_LIMIT) earlier.clear()
    earlier.set(id, current.sample)
    return describe(current.raw, current.sample, before)
  }
}

function describe(raw: RawStats, now: Sample, before: Sample | undefined): InstanceStats {
  const elapsed_ns = before ? (now.at_ms - before.at_ms) * 1e6 : 0
  const memory = raw.memory_stats
  // Pages of files that were read once can be dropped at any time; counting them would show every app at its
  // limit.
  const reclaimable = memory?.stats?.total_inactive_file ?? memory?.stats?.inactive_file ?? 0
  const networks = Object.values(raw.networks ?? {})
  return {
    at: new Date(now.at_ms).toISOString(),
    cpu_cores: before && elapsed_ns > 0 ? Math.max(0, (now.cpu_ns - before.cpu_ns) / elapsed_ns) : 0,
    memory_bytes: Math.max(0, (memory?.usage ?? 0) - reclaimable),
    network_rx_bytes: networks.reduce((sum, { rx_bytes = 0 }) => sum + rx_bytes, 0),
    network_tx_bytes: networks.reduce((sum, { tx_bytes = 0 }) => sum + tx_bytes, 0),
  }
}
