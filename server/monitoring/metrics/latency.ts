import { LATENCY_BOUNDS_MS } from '#server/traffic/schema'

/** Counts by class of latency; the classes are those of the edge's samples. */
export type Latency = Map<number, number>

/** Calls back with every `class:count` of a text; without a piece of text for each, since there are many. */
function eachCount(text: string, found: (index: number, count: number) => void): void {
  let index = 0
  let number = 0
  for (let at = 0; at <= text.length; at++) {
    const code = at < text.length ? text.charCodeAt(at) : COMMA
    if (code === COLON) {
      index = number
      number = 0
    } else if (code === COMMA) {
      found(index, number)
      number = 0
    } else number = number * 10 + code - ZERO
  }
}
const [COMMA, COLON, ZERO] = [44, 58, 48]

/** Reads `class:count,class:count`. */
export function readLatency(text: string | null): Latency {
  const counts: Latency = new Map()
  addWritten(counts, text)
  return counts
}

/** Adds what was written as text. */
export function addWritten(sum: Latency, text: string | null): void {
  if (text) eachCount(text, (index, count) => sum.set(index, (sum.get(index) ?? 0) + count))
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
