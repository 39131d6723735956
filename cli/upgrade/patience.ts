/**
 * How long somebody waits who looks again and again, of which only time counts in which they could look. A program
 * that copies or migrates a large database in one piece neither looks at itself nor answers meanwhile.
 * @param most_gap_ms what a longer gap between two looks counts for.
 * @returns asked at every look, whether the time is over.
 */
export function createPatience(
  limit_ms: number,
  most_gap_ms: number,
  now: () => number = () => performance.now(),
): () => boolean {
  let last_ms = now()
  let waited_ms = 0
  return () => {
    waited_ms += Math.min(now() - last_ms, most_gap_ms)
    last_ms = now()
    return waited_ms >= limit_ms
  }
}
