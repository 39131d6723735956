import type { Clock } from '#server/kernel/clock'
import { ApiError } from '#server/kernel/errors'

/** Calls of one hook in a minute and in a day, each of which is kept; a forge that pushes more is told to wait. */
const LIMITS = [
  { span_ms: 60_000, most: 120, again: 'in a minute', after_s: 60 },
  { span_ms: 86_400_000, most: 10_000, again: 'tomorrow', after_s: 3600 },
]

/** Counts the calls of each hook. Throws RATE_LIMITED for one too many. */
export function createCallLimit(clock: Clock): (id: string) => void {
  const limits = LIMITS.map((limit) => createLimit(clock, limit))
  return (id) => limits.forEach((count) => count(id))
}

function createLimit(clock: Clock, { span_ms, most, again, after_s }: (typeof LIMITS)[number]) {
  const counts = new Map<string, { span: number; calls: number }>()
  return (id: string): void => {
    const span = Math.floor(clock.now() / span_ms)
    const known = counts.get(id)
    const calls = known?.span === span ? known.calls + 1 : 1
    if (counts.size > 10_000) counts.clear()
    counts.set(id, { span, calls })
    if (calls <= most) return
    throw new ApiError(
      'RATE_LIMITED',
      `This hook was called too often. Try again ${again}.`,
      undefined,
      after_s,
    )
  }
}
