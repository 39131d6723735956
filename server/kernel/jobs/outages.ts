/** How long a job waits for something outside that is down, such as the engine. */
export const WAIT_LIMIT_MS = 300_000
/** What went on for so long was kept from nothing: what fails it then is another outage. */
const STEADY_MS = 60_000

/**
 * Tells whether a step still waits for what is down. Only the outage counts: work of an hour, or an hour in the queue
 * for its place, must not leave it without any patience.
 * @param most outages of one step that are waited for
 */
export function createOutages(now: () => number, most: number) {
  let began_ms = Number.NEGATIVE_INFINITY
  let count = 0
  /** @param worked_ms how long the step went on before it met the outage */
  return function mayWait(worked_ms: number): boolean {
    if (count === 0 || worked_ms >= STEADY_MS) {
      began_ms = now()
      count += 1
    }
    return count <= most && now() - began_ms < WAIT_LIMIT_MS
  }
}
