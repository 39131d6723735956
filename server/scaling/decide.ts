import type { Rule } from './schema.ts'

/** What was seen of an app in one period. */
export interface Sample {
  at_ms: number
  /** Instances that served then. */
  count: number
  /** Average per instance, in the unit of the target; null when nothing was measured. */
  value: number | null
  /** Requests per second of the whole app. */
  load: number
}
export interface RuleSituation {
  now_ms: number
  current: number
  /** Oldest first. */
  samples: readonly Sample[]
  up_at_ms: number | null
  down_at_ms: number | null
  /** How many instances were too few for which load, when there were last made more. */
  up_basis: { from: number; load: number } | null
}
/** What to do and the measurement that says so; `to` equals the current count when nothing is to be done. */
export interface RuleVerdict {
  to: number
  value: number | null
  load: number
}

export const PERIOD_MS = 10_000
/** Within so much of the target nothing changes, so that noise does nothing. */
const TOLERANCE = 1.1
/** Fewer instances must be so far below the target. */
const ROOM = 0.95
/** More instances are worth it once so many samples in a row ask for them: one may be a moment's peak. */
const UP_SAMPLES = 2
/** Latency does not fall in proportion: steps are no larger than this, and smaller ones down. */
const MOST_AT_ONCE = 2
const FAST_ENOUGH = 0.5
const LIGHTER = 0.9

/** Whether a step down from `current` would bring back the load per instance that was too much before. */
const wouldBeTooMuch = (
  { current, up_basis }: Pick<RuleSituation, 'current' | 'up_basis'>,
  load: number,
): boolean =>
  up_basis !== null && load / (current - 1) >= (LIGHTER * up_basis.load) / Math.max(1, up_basis.from)

/** What is known of how much is too much, after a step up: the least load per instance that ever was. */
export function basisAfter(
  known: RuleSituation['up_basis'],
  step: { from: number; load: number },
): { from: number; load: number } {
  return known && known.load / known.from <= step.load / step.from ? known : step
}

/** How many instances a sample asks for, as if nothing had happened before. */
function askedBy(rule: Rule, situation: RuleSituation, { value, count, load }: Sample): number {
  const { current } = situation
  if (rule.metric === 'latency_p95') {
    // Without a request nothing is slow.
    if (value === null) return load === 0 ? Math.max(1, current - 1) : current
    if (value > rule.target * TOLERANCE)
      return Math.ceil(current * Math.min(value / rule.target, MOST_AT_ONCE))
    const is_fast = value < rule.target * FAST_ENOUGH && current > 1
    return is_fast && !wouldBeTooMuch(situation, load) ? current - 1 : current
  }
  if (value === null) return current
  const total = value * count
  if (total / current > rule.target * TOLERANCE) return Math.ceil(total / rule.target)
  return Math.min(current, Math.ceil(total / (rule.target * ROOM)))
}

/**
 * How many instances a rule asks for. Pure, so that it can be tried on any trace.
 *
 * Up: when the two newest samples since the last change ask for more, and the cool-down is over. Down: when for
 * the whole cool-down no sample asked for as many as there are, to what the highest asked for. What adds up over
 * instances (use, requests) leads to its count in one step, so a constant load has one count at which nothing
 * is asked for; latency does not add up, so a step down is not tried at a load at which it was too slow before.
 */
export function decide(rule: Rule, situation: RuleSituation): RuleVerdict {
  const { current, now_ms } = situation
  // What lies ahead was written down by a clock that was wrong.
  const past = (at_ms: number | null) => (at_ms !== null && at_ms <= now_ms ? at_ms : null)
  const [up_at_ms, down_at_ms] = [past(situation.up_at_ms), past(situation.down_at_ms)]
  const samples = situation.samples.filter(({ at_ms }) => at_ms <= now_ms)
  const least = Math.max(1, rule.min)
  const bound = (count: number) => Math.min(rule.max, Math.max(least, count))
  const changed_ms = Math.max(up_at_ms ?? 0, down_at_ms ?? 0)
  const fresh = samples.filter(({ at_ms }) => at_ms > changed_ms)
  const last = fresh.at(-1)
  const verdict = (to: number): RuleVerdict => ({ to, value: last?.value ?? null, load: last?.load ?? 0 })
  if (bound(current) !== current) return verdict(bound(current))
  if (!last) return verdict(current)

  const asked = fresh.map((sample) => bound(askedBy(rule, situation, sample)))
  const newest = asked.slice(-UP_SAMPLES)
  if (
    newest.length === UP_SAMPLES &&
    newest.every((count) => count > current) &&
    now_ms - (up_at_ms ?? 0) >= rule.scale_up_cooldown_s * 1000
  )
    return verdict(newest.at(-1)!)

  const window_ms = rule.scale_down_cooldown_s * 1000
  const is_covered = now_ms - changed_ms >= window_ms && fresh[0]!.at_ms <= now_ms - window_ms + PERIOD_MS
  if (!is_covered) return verdict(current)
  const highest = Math.max(
    ...asked.filter((_, index) => fresh[index]!.at_ms >= now_ms - window_ms - PERIOD_MS),
  )
  return verdict(Math.min(current, highest))
}
