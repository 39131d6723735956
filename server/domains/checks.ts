import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { ClockTrust } from '#server/kernel/clock-trust'
import type { Db } from '#server/kernel/db'
import { ApiError, invalid } from '#server/kernel/errors'
import { createPool, inPlace } from '#server/kernel/jobs/pool'
import type { Log } from '#server/kernel/log'
import type { Dns } from '#server/platform/dns/dns'
import { type ReservedNames, reservedReason } from './hostname.ts'
import { lookUp } from './lookup.ts'
import { domainMachine } from './machine.ts'
import type { Ownership } from './ownership.ts'
import type { DomainRepository, DomainRow } from './repository.ts'
import { type Expected, type Finding, evaluate, txtNameOf } from './verification.ts'
import { findingOf } from './view.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** Waits before the next look at an unproven domain; the last one repeats. */
const WAITS_MS = [1, 2, 5, 10, 30].map((minutes) => minutes * MINUTE_MS)
const LAST_WAIT_MS = HOUR_MS
/** Without a proof for so long a domain has failed. */
export const GIVE_UP_AFTER_MS = 72 * HOUR_MS
/** How often a proven domain is looked at, to notice when it no longer leads here. */
const WATCH_MS = 6 * HOUR_MS
/** No domain waits for a time that lies further ahead. */
const AHEAD_MS = 2 * WATCH_MS
/** Domains that a pass looks at together, and how many of them of one project: its name servers may be slow. */
const AT_ONCE = 8
const AT_ONCE_IN_PROJECT = 2
/**
 * Looks at once, whoever asks for them: each has up to 24 questions under way, a socket for each, for as long as the
 * name servers of the domain like.
 */
const LOOKS_AT_ONCE = 16
/** Says nothing about whose claims these are. */
const CONTESTED =
  'That does not tell whose the name is: another project of this installation asks for it, or for one above or below it, as well. Set the TXT record, which decides.'
const namesOf = ({ hostname, counterpart }: DomainRow) => (counterpart ? [hostname, counterpart] : [hostname])

export interface CheckOptions {
  db: Db
  clock: Clock
  clock_trust: ClockTrust
  log: Log
  audit: AuditTrail
  dns: Dns
  ports: { expected(): Expected; resolvers(): readonly string[]; reserved(): ReservedNames }
  repository: DomainRepository
  ownership: Ownership
  note(row: DomainRow, type: string, payload?: Record<string, unknown>, actor?: Actor): void
  /** Brings a proven domain to the edge and to certificates, after the commit. */
  published(row: DomainRow): void
}

/**
 * Looks domains up: at once when they are added, by themselves with growing waits, and when somebody asks.
 */
export function createDomainChecks({
  db,
  clock,
  clock_trust,
  log,
  audit,
  dns,
  ports,
  repository,
  ownership,
  note,
  published,
}: CheckOptions) {
  const under_way = new Map<string, Promise<void>>()
  const later = (wait_ms: number) => new Date(clock.now() + wait_ms).toISOString()
  const isProven = (row: DomainRow) => row.status === 'verified' || row.status === 'active'

  const looks = createPool(LOOKS_AT_ONCE, { others: () => true })

  const look = async (row: DomainRow): Promise<Finding> => {
    const txt_name = txtNameOf(row)
    const names = namesOf(row)
    const resolvers = ports.resolvers()
    return evaluate(
      await Promise.all(names.map((name) => lookUp(dns, resolvers, name, txt_name))),
      ports.expected(),
      row.token,
      txt_name,
    )
  }

  /** Waits for a turn of the project. */
  const find = (row: DomainRow): Promise<Finding> => inPlace(looks, row.project_id, () => look(row))

  /** The name may have gone to somebody else since it was added, or others may want it as well. */
  const claimProblem = (row: DomainRow, has_text: boolean): string | undefined => {
    for (const name of namesOf(row)) {
      const reserved = reservedReason(name, ports.reserved())
      if (reserved !== undefined) return `${name} ${reserved}`
    }
    if (!has_text && ownership.isContested(row)) return CONTESTED
    try {
      ownership.require(row)
      return undefined
    } catch (error) {
      if (error instanceof ApiError) return error.message
      throw error
    }
  }

  /** Paths of one name are proven together: what proved another one proves this one. */
  const provenBeside = (row: DomainRow, finding: Finding): Finding => {
    const sibling = finding.proven_by
      ? undefined
      : repository
          .ofNames([row.hostname], row.project_id)
          .find(
            (other) =>
              isProven(other) &&
              other.kind !== 'automatic' &&
              (row.counterpart === null || other.counterpart === row.counterpart),
          )
    return sibling
      ? {
          ...finding,
          proven_by: findingOf(sibling)?.proven_by ?? 'txt',
          message: `The project has proven this name already. ${finding.message}`,
        }
      : finding
  }

  const nextWait = (row: DomainRow): number | null => {
    if (isProven(row)) return WATCH_MS
    if (row.status === 'failed') return null
    return WAITS_MS[row.checks] ?? LAST_WAIT_MS
  }

  const prove = (row: DomainRow, actor?: Actor) => {
    const status = domainMachine.next(row.status, 'verify')
    repository.setStatus(row.id, row.status, status, clock.iso())
    repository.update(
      row.id,
      { verified_at: clock.iso(), checks: 0, next_check_at: later(WATCH_MS) },
      clock.iso(),
    )
    note({ ...row, status }, 'verified', {}, actor)
    // Those who wanted the name as well are told now that it is gone, not in an hour.
    for (const id of ownership.rivals(row)) db.afterCommit(() => soon(id))
    published({ ...row, status })
  }
  const giveUp = (row: DomainRow, message: string) => {
    repository.setStatus(row.id, row.status, domainMachine.next(row.status, 'give_up'), clock.iso())
    repository.update(row.id, { next_check_at: null }, clock.iso())
    note({ ...row, status: 'failed' }, 'failed', { message })
  }

  /** Records what was found, in one transaction with what follows from it. */
  const record = (id: string, finding: Finding, actor?: Actor) =>
    db.tx(() => {
      const row = repository.find(id)
      if (!row) return
      const previous = findingOf(row)
      const judged = isProven(row) ? finding : provenBeside(row, finding)
      const problem = judged.proven_by && !isProven(row) ? claimProblem(row, judged.has_text) : undefined
      const kept: Finding =
        problem === undefined
          ? judged
          : { ...judged, proven_by: null, message: `${judged.message} ${problem}` }
      const wait = nextWait(row)
      repository.update(
        id,
        {
          finding: JSON.stringify(kept),
          checks: row.checks + 1,
          checked_at: clock.iso(),
          next_check_at: wait === null ? null : later(wait),
        },
        clock.iso(),
      )
      if (actor)
        audit.record(actor, {
          action: 'domain.verify',
          resource_type: 'domain',
          resource_id: id,
          project_id: row.project_id,
          after: { hostname: row.hostname, proven_by: kept.proven_by, message: kept.message },
        })
      if (isProven(row)) {
        if (previous?.points_here !== false && kept.points_here === false)
          note(row, 'drifted', { message: kept.message })
        return
      }
      if (kept.proven_by) prove(row, actor)
      else if (
        row.status === 'pending' &&
        clock_trust.isTrusted() &&
        clock.now() - Date.parse(row.created_at) >= GIVE_UP_AFTER_MS
      )
        giveUp(row, kept.message)
    })

  const lookAt = async (id: string, actor?: Actor): Promise<void> => {
    const row = repository.find(id)
    if (!row || row.kind === 'automatic') return
    const finding = await find(row)
    const now = repository.find(id)
    // What was found of one name says nothing about the other one, which may have been asked for meanwhile.
    if (now && namesOf(now).join() !== namesOf(row).join()) return lookAt(id, actor)
    record(id, finding, actor)
  }

  /** One look at a time per domain; who asks meanwhile waits for a look of their own. */
  const check = (id: string, actor?: Actor): Promise<void> => {
    const looked = (under_way.get(id) ?? Promise.resolve())
      .catch(() => undefined)
      .then(() => lookAt(id, actor))
    under_way.set(id, looked)
    const done = () => {
      if (under_way.get(id) === looked) under_way.delete(id)
    }
    looked.then(done, done)
    return looked
  }
  const soon = (id: string): void => {
    check(id).catch((error: unknown) => log.warn('A domain could not be looked up', { domain: id, error }))
  }

  return {
    check,
    soon,
    /**
     * Looks at every domain whose time has come, also at those whose time comes meanwhile; woken every minute.
     * Returns how many.
     */
    async pass(): Promise<number> {
      const looking = new Map<string, Promise<void>>()
      /** What could not be looked at is due still, and would be begun again and again. */
      const failed = new Set<string>()
      let count = 0
      const begin = (id: string): void => {
        count += 1
        const looked = check(id).catch((error: unknown) => {
          failed.add(id)
          log.warn('A domain could not be looked up', { domain: id, error })
        })
        looking.set(
          id,
          looked.then(() => {
            looking.delete(id)
            fill()
          }),
        )
      }
      /** Some of each project, in the order in which they are due: all that are due are sorted for it. */
      let waiting: string[] = []
      // What is looked at is due still, and so among those of its project.
      const next = (): string | undefined => {
        if (waiting.length === 0)
          waiting = repository
            .due(clock.iso(), later(AHEAD_MS), AT_ONCE_IN_PROJECT, failed)
            .filter((id) => !looking.has(id))
            .reverse()
        return waiting.pop()
      }
      const fill = (): void => {
        while (looking.size < AT_ONCE) {
          const id = next()
          if (id === undefined) return
          begin(id)
        }
      }
      fill()
      while (looking.size > 0) await Promise.race(looking.values())
      return count
    },
    /** Throws 422 with what was found unless DNS proves every name of the domain as it is wanted. */
    async requireProof(row: DomainRow): Promise<void> {
      const finding = await find(row)
      if (!finding.proven_by)
        throw invalid(
          'www',
          `needs both names to be proven. ${finding.message} Or set a TXT record at ${txtNameOf(row)}.`,
        )
    },
    /** Resolves when nobody looks anything up. For tests. */
    async idle(): Promise<void> {
      while (under_way.size > 0) await Promise.allSettled([...under_way.values()])
    },
  }
}
export type DomainChecks = ReturnType<typeof createDomainChecks>
