import { LATENCY_BOUNDS_MS } from '#server/traffic/schema'

/** Counts by class of latency; the classes are those of the edge's samples. */
export type Latency = Map<number, number>

/** Reads `class:count,class:count`. */
export function readLatency(text: string | null): Latency {
  const counts: Latency = new Map()
  for (const pair of text ? text.split(',') : []) {
    const [index, count] = pair.split(':').map(Number)
    counts.set(index!, count!)
  }
  return counts
}

export const writeLatency = (counts: Latency): string | null =>
  counts.size === 0
    ? null
    : [...counts]
        .sort(([a], [b]) => a - b)
        .map(([index, count]) => `${index}:${count}`)
        .join(',')

/** The counts of an edge's sample, without its empty classes. */
export const fromCounts = (counts: readonly number[]): Latency =>
  new Map([...counts.entries()].filter(([, count]) => count > 0))

export function addLatency(sum: Latency, added: Latency): void {
  for (const [index, count] of added) sum.set(index, (sum.get(index) ?? 0) + count)
}

/**
 * The latency that a share of the requests did not exceed, in milliseconds: the upper end of its class; null
 * without requests.
 */
export function percentileOf(counts: Latency, share: number): number | null {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  let seen = 0
  for (const [index, count] of [...counts].sort(([a], [b]) => a - b)) {
    seen += count
    if (seen >= total * share) return LATENCY_BOUNDS_MS[Math.min(index, LATENCY_BOUNDS_MS.length - 1)]!
  }
  return null
}
