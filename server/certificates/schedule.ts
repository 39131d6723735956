import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import type { Jobs } from '#server/kernel/jobs/jobs'
import type { Log } from '#server/kernel/log'
import { momentOf } from '#server/kernel/sentences'
import type { Accounts } from './accounts.ts'
import type { Budget } from './budget.ts'
import type { EdgeCertificates } from './edge.ts'
import type { Lifecycle } from './lifecycle.ts'
import type { CertificatePorts } from './ports.ts'
import type { CertificateRepository, EndingCertificate } from './repository.ts'

export interface ScheduleOptions {
  ports: CertificatePorts
  db: Db
  clock: Clock
  jobs: Jobs
  log: Log
  repository: CertificateRepository
  lifecycle: Lifecycle
  budget: Budget
  accounts: Accounts
  edge: EdgeCertificates
}
const DAY_MS = 86_400_000
/** A clock that is set back by less makes an attempt late by no more. */
const AHEAD_MS = 3_600_000
/**
 * Attempts that one pass begins, so that a server with thousands of certificates asks for them bit by bit.
 */
const PER_PASS = 20
/** Days before the expiry at which it is told, once each. */
const NOTICES = [1, 7, 21] as const
const OPEN = ['queued', 'running', 'undoing']

/** Recurring work: renewals that are due, notices before an expiry, what the edge does not show yet. */
export function createSchedule({
  ports,
  db,
  clock,
  jobs,
  log,
  repository,
  lifecycle,
  budget,
  accounts,
  edge,
}: ScheduleOptions) {
  /**
   * The threshold that a certificate is below of; one that it was never above of does not count, nor one
   * before a renewal that comes by itself.
   */
  function noticeOf({ not_before, not_after, auto_renew }: EndingCertificate): number | undefined {
    const left_ms = Date.parse(not_after!) - clock.now()
    const lifetime_ms = Date.parse(not_after!) - Date.parse(not_before!)
    return NOTICES.find(
      (days) => left_ms < days * DAY_MS && days * DAY_MS < (auto_renew ? lifetime_ms / 3 : lifetime_ms),
    )
  }
  function expire(id: string): void {
    const row = repository.find(id)!
    if (row.status === 'active' && lifecycle.move(row, 'expire'))
      lifecycle.tell(row, 'expired', {
        not_after: row.not_after,
        message: `It ended on ${momentOf(row.not_after!)}.`,
      })
  }
  function watchExpiry(): void {
    const horizon = new Date(clock.now() + Math.max(...NOTICES) * DAY_MS).toISOString()
    for (const ending of repository.endingBefore(horizon)) {
      if (Date.parse(ending.not_after!) <= clock.now()) {
        expire(ending.id)
        continue
      }
      const days = noticeOf(ending)
      if (days === undefined || (ending.noticed_days !== null && ending.noticed_days <= days)) continue
      const row = repository.find(ending.id)!
      repository.setNoticed(row.id, days)
      lifecycle.tell(row, 'expiring', {
        days,
        not_after: row.not_after,
        auto_renew: row.auto_renew === 1,
        last_error: row.last_error,
        message: `It ends on ${momentOf(row.not_after!)}, in less than ${days === 1 ? 'a day' : `${days} days`}.`,
      })
    }
  }
  function beginDue(): void {
    const ahead = new Date(clock.now() + AHEAD_MS).toISOString()
    for (const row of repository.due(clock.iso(), ahead, PER_PASS)) {
      // Made for a domain that asks for another kind by now: looked at again tomorrow, in case it changes
      // back.
      if (row.domain_id !== null && ports.domain(row.domain_id)?.ssl_mode !== row.source) {
        repository.setFailure(
          row.id,
          { ...row, next_attempt_at: new Date(clock.now() + DAY_MS).toISOString() },
          clock.iso(),
        )
        continue
      }
      if (row.source === 'self_signed') {
        lifecycle.selfSign(row)
        continue
      }
      const wait = budget.waitFor(row)
      if (wait)
        repository.setFailure(
          row.id,
          {
            failures: row.failures,
            last_error: wait.reason,
            next_attempt_at: wait.until,
            blocked_until: row.blocked_until,
          },
          clock.iso(),
        )
      else lifecycle.begin(row)
    }
  }
  /** An attempt whose work ended without a word would wait for ever. */
  function mendInterrupted(): void {
    for (const id of repository.issuing()) {
      if (!OPEN.includes(jobs.findBySubject(id)?.status ?? ''))
        lifecycle.fail(
          repository.find(id)!,
          { code: 'interrupted', message: 'The last attempt was interrupted.', hint: null },
          null,
        )
    }
  }
  return {
    /** One pass; called every few minutes. Never rejects: what fails now is tried at the next pass. */
    async pass(): Promise<{ certificates: number }> {
      for (const part of [mendInterrupted, watchExpiry, beginDue]) db.tx(part)
      if (accounts.isRotationDue())
        await accounts
          .rotateKey(AbortSignal.timeout(60_000))
          .catch((error: unknown) => log.warn('The key of the ACME account could not be changed', { error }))
      await edge
        .sync()
        .catch((error: unknown) => log.warn('Certificates could not be handed to the edge', { error }))
      return { certificates: repository.issuing().length }
    },
  }
}
export type Schedule = ReturnType<typeof createSchedule>
