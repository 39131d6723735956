import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import type { Events } from '#server/kernel/events'
import type { Failure, Outcome } from '#server/kernel/jobs/definition'
import type { Jobs } from '#server/kernel/jobs/jobs'
import type { Secrets } from '#server/kernel/secrets'
import { createSelfSigned } from '#server/platform/ingress/self-signed'
import { backoff, type Budget, renewalTime } from './budget.ts'
import { type ChainFacts, readChain, readKey } from './chain.ts'
import { keyContext } from './edge.ts'
import { ISSUE, type IssuePayload } from './job.ts'
import { certificateMachine, type CertificateEvent } from './machine.ts'
import { type CertificateRepository, type CertificateRow, namesIn } from './repository.ts'

export interface LifecycleOptions {
  db: Db
  clock: Clock
  events: Events
  jobs: Jobs
  secrets: Secrets
  repository: CertificateRepository
  budget: Budget
  random(): number
}
const SELF_SIGNED_DAYS = 3650

/**
 * What happens to a certificate: attempts begin and end, chains are installed. Each is row, event and job in
 * one transaction.
 */
export function createLifecycle({
  db,
  clock,
  events,
  jobs,
  secrets,
  repository,
  budget,
  random,
}: LifecycleOptions) {
  const emit = (row: CertificateRow, what: string, payload: Record<string, unknown>) =>
    events.append({
      type: `certificate.${what}`,
      project_id: row.project_id,
      payload: { certificate_id: row.id, names: namesIn(row), source: row.source, ...payload },
    })
  const move = (row: CertificateRow, event: CertificateEvent): boolean =>
    repository.setStatus(row.id, row.status, certificateMachine.next(row.status, event), clock.iso())
  const hasGoodChain = (row: CertificateRow) =>
    row.chain !== null && row.not_after !== null && Date.parse(row.not_after) > clock.now()

  /** Notes a failed attempt: the old certificate serves on, and the time of the next attempt is known. */
  function fail(
    row: CertificateRow,
    failure: Pick<Failure, 'code' | 'message' | 'hint'>,
    retry_after_s: number | null,
  ): void {
    const lost = row.chain === null ? 'fail' : 'expire'
    if (!move(row, hasGoodChain(row) ? 'keep' : lost)) return
    const failures = row.failures + 1
    const wait = budget.waitFor(row)
    const blocked_until =
      retry_after_s === null ? null : new Date(clock.now() + retry_after_s * 1000).toISOString()
    const next = [new Date(clock.now() + backoff(failures, random)).toISOString(), blocked_until, wait?.until]
      .filter((time) => time != null)
      .sort()
      .at(-1)!
    const last_error = [failure.message, failure.hint]
      .flatMap((text) => (text ? [text.replace(/([^.!?\u2026])$/, '$1.')] : []))
      .join(' ')
    repository.setFailure(row.id, { failures, last_error, next_attempt_at: next, blocked_until }, clock.iso())
    emit(row, 'failed', {
      code: failure.code,
      error: last_error,
      next_attempt_at: row.auto_renew ? next : null,
      serves: hasGoodChain(row),
    })
  }

  /** Notes that an attempt waits for the budget: it has not failed, and nobody is told of a fault. */
  function postpone(row: CertificateRow, wait: { until: string; reason: string }): void {
    const lost = row.chain === null ? 'wait' : 'expire'
    if (!move(row, hasGoodChain(row) ? 'keep' : lost)) return
    const { failures, blocked_until } = row
    repository.setFailure(
      row.id,
      { failures, last_error: wait.reason, next_attempt_at: wait.until, blocked_until },
      clock.iso(),
    )
  }

  function install(row: CertificateRow, facts: ChainFacts, key: string, directory_url: string | null): void {
    if (!move(row, 'install')) return
    const names = row.source === 'acme' ? namesIn(row) : facts.names
    const renews = row.auto_renew === 1 && (row.source === 'acme' || row.source === 'self_signed')
    repository.setInstalled(row.id, facts, {
      names: JSON.stringify(names),
      name: names[0]!,
      directory_url,
      at: clock.iso(),
      private_key: secrets.seal(key, keyContext('private_key', row.id)),
      renew_at: renews ? renewalTime(facts.not_before, facts.not_after, random) : null,
    })
    emit(row, row.chain === null ? 'issued' : 'renewed', {
      issuer: facts.issuer,
      not_after: facts.not_after,
    })
  }

  /** Forgets a certificate, and tells so: whoever watches it would wait for ever. */
  function forget(row: CertificateRow): void {
    repository.delete(row.id)
    emit(row, 'deleted', {})
  }

  return {
    tell: emit,
    fail,
    install,
    hasGoodChain,
    forget,
    move,
    /**
     * Begins an attempt. The budget must have been asked; false when something else changed the certificate.
     */
    begin: (row: CertificateRow): boolean =>
      db.tx(() => {
        if (!move(row, 'issue')) return false
        jobs.enqueue<IssuePayload>({
          kind: ISSUE,
          lane: `certificate:${row.id}`,
          subject: row.id,
          project_id: row.project_id,
          payload: { certificate_id: row.id },
        })
        return true
      }),
    /** Writes how an attempt ended; a success has installed the chain already. */
    ended(row: CertificateRow, outcome: Outcome, retry_after_s: number | null): void {
      if (row.status !== 'issuing') return
      const wait = outcome.failure?.code === 'acme_rate_limited' ? budget.waitFor(row) : undefined
      if (wait) return postpone(row, wait)
      fail(
        row,
        outcome.failure ?? { code: 'cancelled', message: 'The attempt was cancelled.', hint: null },
        retry_after_s,
      )
    },
    installed: (row: CertificateRow, facts: ChainFacts, key: string, directory_url: string) =>
      db.tx(() => {
        install(row, facts, key, directory_url)
        // What was made for the same domain before has no use any more, nor has one with fewer names.
        const made = row.domain_id === null ? [] : repository.ofDomain(row.domain_id)
        const own = made.findIndex(({ id }) => id === row.id)
        for (const [at, other] of made.entries()) {
          const is_covered = namesIn(other).every((name) => namesIn(row).includes(name))
          if (at !== own && other.source === 'acme' && other.status !== 'issuing' && (at < own || is_covered))
            forget(other)
        }
      }),
    /** Makes a certificate of this server's own, for many years. */
    selfSign: (row: CertificateRow) =>
      db.tx(() => {
        const pem = createSelfSigned(
          namesIn(row) as [string, ...string[]],
          new Date(clock.now()),
          SELF_SIGNED_DAYS,
        )
        const at = pem.indexOf('-----BEGIN PRIVATE')
        install(
          row,
          {
            ...readChain(pem.slice(0, at), readKey(pem.slice(at)), clock.now()),
            warning: 'It vouches for itself: clients warn, unless they were told to trust it.',
          },
          pem.slice(at),
          null,
        )
      }),
  }
}
export type Lifecycle = ReturnType<typeof createLifecycle>
