import { getDomain } from 'tldts'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { forgetSome } from '#server/kernel/forget'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const MINUTE_MS = 60_000

interface Limit {
  kind: 'order' | 'issued' | 'failed_validation'
  most: number
  window_ms: number
  says: string
}
/**
 * Below what large public authorities allow per account: 300 orders in 3 hours, 50 certificates per domain
 * and week, 5 failed validations per name and hour.
 */
const ORDERS: Limit = {
  kind: 'order',
  most: 250,
  window_ms: 3 * HOUR_MS,
  says: 'This server has asked for many certificates in the last three hours',
}
const PER_DOMAIN: Limit = {
  kind: 'issued',
  most: 45,
  window_ms: 7 * DAY_MS,
  says: 'Many certificates were issued for this domain in the last week',
}
const FAILURES: Limit = {
  kind: 'failed_validation',
  most: 5,
  window_ms: HOUR_MS,
  says: 'The certificate authority refused this name five times in the last hour',
}
/** Waits after the first, second … failure in a row; from the last one on it stays the same. */
const BACKOFF_MS = [5 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS, 3 * HOUR_MS, 8 * HOUR_MS, DAY_MS]
const JITTER = 0.1

/** The domain that authorities count by: the one that somebody registered. */
export const registrableDomain = (name: string): string =>
  getDomain(name.replace(/^\*\./, ''), { allowPrivateDomains: true }) ?? name

/** The names that authorities validate: a wildcard is proven by the name that it stands below. */
const validated = (names: readonly string[]): string[] => [
  ...new Set(names.map((name) => name.replace(/^\*\./, ''))),
]

/** Milliseconds until the next attempt after so many failures in a row, spread by ten percent. */
export function backoff(failures: number, random: () => number): number {
  const base = BACKOFF_MS[Math.min(Math.max(failures, 1), BACKOFF_MS.length) - 1]!
  return Math.round(base * (1 + JITTER * (2 * random() - 1)))
}

/**
 * When a certificate is renewed: at two thirds of its lifetime, spread by two percent of it so that many do
 * not come at once.
 */
export function renewalTime(not_before: string, not_after: string, random: () => number): string {
  const [from, to] = [Date.parse(not_before), Date.parse(not_after)]
  return new Date(from + (to - from) * (2 / 3 + 0.02 * (2 * random() - 1))).toISOString()
}

/** What may be asked of authorities now. */
export interface Budget {
  /** When an order for these names may be placed, with the reason for waiting; undefined: now. */
  waitFor(names: readonly string[]): { until: string; reason: string } | undefined
  record(kind: Limit['kind'], names: readonly string[]): void
  /** Forgets some of what no limit looks at any more; returns how much. */
  prune(): number
}

/** What an attempt counts against: the server, each registered domain, or each name. */
function subjectsOf(kind: Limit['kind'], names: readonly string[]): string[] {
  if (kind === 'order') return ['']
  return kind === 'issued' ? [...new Set(names.map(registrableDomain))] : validated(names)
}

export function createBudget(db: Db, clock: Clock): Budget {
  /** The time at which one of the newest `most` leaves the window. */
  function reached({ kind, most, window_ms }: Limit, subject: string): number | undefined {
    const [since, until] = [-window_ms, HOUR_MS].map((by_ms) => new Date(clock.now() + by_ms).toISOString())
    // What lies further ahead was written down by a clock that was wrong.
    const nth = db
      .sql(
        'SELECT created_at FROM acme_attempts WHERE kind = ? AND subject = ? AND created_at > ? AND created_at < ? ORDER BY created_at DESC LIMIT 1 OFFSET ?',
      )
      .pluck()
      .get(kind, subject, since, until, most - 1) as string | undefined
    return nth === undefined ? undefined : Date.parse(nth) + window_ms
  }
  return {
    waitFor(names) {
      const checks: [Limit, string][] = [
        [ORDERS, ''],
        ...[...new Set(names.map(registrableDomain))].map((name): [Limit, string] => [PER_DOMAIN, name]),
        ...validated(names).map((name): [Limit, string] => [FAILURES, name]),
      ]
      const waits = checks.flatMap(([limit, subject]) => {
        const until = reached(limit, subject)
        return until === undefined
          ? []
          : [
              {
                until: new Date(until).toISOString(),
                reason: `${limit.says}${subject ? ` (${subject})` : ''}; going on would only have it refuse more.`,
              },
            ]
      })
      return waits.sort((a, b) => b.until.localeCompare(a.until))[0]
    },
    record(kind, names) {
      for (const subject of subjectsOf(kind, names))
        db.sql('INSERT INTO acme_attempts (kind, subject, created_at) VALUES (?, ?, ?)').run(
          kind,
          subject,
          clock.iso(),
        )
    },
    prune: () =>
      forgetSome(
        db,
        { table: 'acme_attempts', where: 'created_at < ?' },
        new Date(clock.now() - 8 * DAY_MS).toISOString(),
      ),
  }
}
