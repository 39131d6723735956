import { getDomain } from 'tldts'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { forgetSome } from '#server/kernel/forget'
import { type CertificateRepository, type CertificateRow, namesIn } from './repository.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const MINUTE_MS = 60_000

interface Limit {
  kind: 'order' | 'issued' | 'failed_validation'
  most: number
  /** How much of it is kept for what comes first: renewals that are due, and the name of the dashboard. */
  kept: number
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
  kept: 50,
  window_ms: 3 * HOUR_MS,
  says: 'This server has asked for many certificates in the last three hours',
}
const PER_DOMAIN: Limit = {
  kind: 'issued',
  most: 45,
  kept: 5,
  window_ms: 7 * DAY_MS,
  says: 'Many certificates were issued for this domain in the last week',
}
const FAILURES: Limit = {
  kind: 'failed_validation',
  most: 5,
  kept: 0,
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

/** What is asked of a certificate, to know whether an authority may be asked for it. */
export type Asked = Pick<CertificateRow, 'names' | 'project_id' | 'domain_id' | 'chain' | 'renew_at'>

type Stage = 'by_itself' | 'by_hand' | 'ordered'

/** What may be asked of authorities now. */
export interface Budget {
  /**
   * When an order for this certificate may be placed, with the reason for waiting; undefined: now.
   * @param stage `by_hand` when somebody asks for it, who may do so again and again; `ordered` when there is an order,
   * which is to become a certificate now.
   */
  waitFor(certificate: Asked, stage?: Stage): { until: string; reason: string } | undefined
  /** @param names Those that it was about; all of the certificate when absent. */
  record(kind: Limit['kind'], certificate: Asked, names?: readonly string[]): void
  /** Forgets some of what no limit looks at any more; returns how much. */
  prune(): number
}

/** What an attempt counts against: the server, each registered domain, or each name. */
function subjectsOf(kind: Limit['kind'], names: readonly string[]): string[] {
  if (kind === 'order') return ['']
  return kind === 'issued' ? [...new Set(names.map(registrableDomain))] : validated(names)
}

/** What the attempts of one project are counted by, beside those of all. */
const ofProject = (subject: string, project_id: string) => `${subject}@${project_id}`

export interface BudgetOptions {
  db: Db
  clock: Clock
  repository: Pick<CertificateRepository, 'othersWant'>
  /** Whether a certificate is for the name of the dashboard. */
  isOfInstallation(certificate: Asked): boolean
}

/**
 * Counts what was asked of authorities. Where several projects want certificates, one gets no more than it leaves
 * to the others: the whole would be spent by whoever asks again and again.
 */
export function createBudget({ db, clock, repository, isOfInstallation }: BudgetOptions): Budget {
  // What lies further ahead was written down by a clock that was wrong.
  const range = ({ window_ms }: Limit) =>
    [-window_ms, HOUR_MS].map((by_ms) => new Date(clock.now() + by_ms).toISOString())
  /** The time at which one of the newest `most` leaves the window. */
  function reached(limit: Limit, subject: string, most: number): number | undefined {
    const nth = db
      .sql(
        'SELECT created_at FROM acme_attempts WHERE kind = ? AND subject = ? AND created_at > ? AND created_at < ? ORDER BY created_at DESC LIMIT 1 OFFSET ?',
      )
      .pluck()
      .get(limit.kind, subject, ...range(limit), most - 1) as string | undefined
    return nth === undefined ? undefined : Date.parse(nth) + limit.window_ms
  }
  const count = (limit: Limit, subject: string): number =>
    db
      .sql(
        'SELECT count(*) FROM acme_attempts WHERE kind = ? AND subject = ? AND created_at > ? AND created_at < ?',
      )
      .pluck()
      .get(limit.kind, subject, ...range(limit)) as number
  /** The time at which a project that has taken as much as it leaves to others may go on. */
  function shareSpent(limit: Limit, subject: string, project_id: string): number | undefined {
    const taken = count(limit, ofProject(subject, project_id))
    const all = count(limit, subject)
    if (taken === 0 || taken < limit.most - limit.kept - all) return undefined
    return repository.othersWant(project_id, subject) ? reached(limit, subject, all) : undefined
  }
  /** Authorities do not count a renewal of the same names among the certificates of a domain. */
  const isDue = ({ chain, renew_at }: Asked) => chain !== null && renew_at !== null && renew_at <= clock.iso()

  return {
    waitFor(certificate, stage = 'by_itself') {
      const names = namesIn(certificate)
      const due = isDue(certificate)
      const first = (due && stage !== 'by_hand') || isOfInstallation(certificate)
      const domains = due ? [] : new Set(names.map(registrableDomain))
      const checks: [Limit, string][] = [
        ...[...domains].map((name): [Limit, string] => [PER_DOMAIN, name]),
        ...(stage === 'ordered'
          ? []
          : [
              [ORDERS, ''] as [Limit, string],
              ...validated(names).map((name): [Limit, string] => [FAILURES, name]),
            ]),
      ]
      const waits = checks.flatMap(([limit, subject]) => {
        const until =
          reached(limit, subject, first ? limit.most : limit.most - limit.kept) ??
          (first || limit === FAILURES ? undefined : shareSpent(limit, subject, certificate.project_id))
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
    record(kind, certificate, names = namesIn(certificate)) {
      if (kind === 'issued' && isDue(certificate)) return
      const subjects = subjectsOf(kind, names)
      const counted =
        kind === 'failed_validation'
          ? subjects
          : subjects.flatMap((subject) => [subject, ofProject(subject, certificate.project_id)])
      for (const subject of counted)
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
