import { type Actor, isAdministrator, visibleProjects } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { ApiError, conflict, notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import type { Jobs } from '#server/kernel/jobs/jobs'
import type { Log } from '#server/kernel/log'
import { orThrow } from '#server/kernel/or-throw'
import { selectPage } from '#server/kernel/page'
import { limits, paged } from '#server/kernel/schemas'
import type { Secrets } from '#server/kernel/secrets'
import type { Acme } from '#server/platform/acme/acme'
import type { Ingress } from '#server/platform/ingress/ingress'
import { createAccounts } from './accounts.ts'
import { createBudget } from './budget.ts'
import { createChallenges } from './challenges.ts'
import { createEdgeCertificates } from './edge.ts'
import { issueJob } from './job.ts'
import { createKeys } from './keys.ts'
import { createLifecycle } from './lifecycle.ts'
import { createHostnames, namesOfDomain } from './hostnames.ts'
import { createIssuance } from './issuance.ts'
import type { CertificatePorts, VerifiedDomain } from './ports.ts'
import { type CertificateRow, createCertificateRepository, namesIn } from './repository.ts'
import { createRevocations } from './revocation.ts'
import { createSchedule } from './schedule.ts'
import {
  type Certificate,
  type CertificateQuery,
  covers,
  type NewCertificate,
  type NewCsr,
} from './schema.ts'

export interface CertificateOptions {
  db: Db
  clock: Clock
  log: Log
  secrets: Secrets
  events: Events
  jobs: Jobs
  audit: AuditTrail
  acme: Acme
  ingress: Ingress
  ports: CertificatePorts
  /** From 0 to 1; spreads renewals. */
  random?: () => number
}

/** Certificates of domains: made, kept fresh, and handed to the edge. */
export function createCertificates(options: CertificateOptions) {
  const { db, clock, log, secrets, events, jobs, audit, acme, ingress, ports, random = Math.random } = options
  const repository = createCertificateRepository(db)
  const budget = createBudget({
    db,
    clock,
    repository,
    isOfInstallation: ({ domain_id }) =>
      domain_id !== null && ports.domain(domain_id)?.of_installation === true,
  })
  const accounts = createAccounts({ db, clock, secrets, acme, rules: ports.rules })
  const lifecycle = createLifecycle({ db, clock, events, jobs, secrets, repository, budget, random })
  const edge = createEdgeCertificates({ ingress, log, secrets, repository, ports })
  const names = createHostnames(ports)
  const makeKey = createKeys(acme)
  jobs.define(
    issueJob({
      clock,
      repository,
      secrets,
      makeKey,
      accounts,
      budget,
      edge,
      ports,
      challenges: createChallenges({ ingress, ports }),
      requireVerified: names.requireVerified,
      installed: lifecycle.installed,
      ended: lifecycle.ended,
    }),
  )
  const revocations = createRevocations({ jobs, accounts, repository, lifecycle, audit })
  const schedule = createSchedule({
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
  })

  const get = (id: string): CertificateRow => orThrow(repository.find(id), () => notFound('certificate'))
  const view = (row: CertificateRow, hostnames: string[]): Certificate => ({
    ...row,
    names: namesIn(row),
    auto_renew: row.auto_renew === 1,
    csr: row.request,
    hostnames,
  })
  const shown = (id: string) => view(get(id), edge.hostnames(id))
  /**
   * The edge follows after the commit, in one project or in all; what it refuses now is handed over by the
   * next pass.
   */
  const deliver = (project_id?: string) =>
    db.afterCommit(() => void edge.sync(project_id).catch(() => undefined))
  const made = createIssuance({
    db,
    clock,
    secrets,
    audit,
    acme,
    makeKey,
    repository,
    lifecycle,
    budget,
    names,
    ports,
    deliver,
  })

  function requireBudget(row: CertificateRow): void {
    const wait =
      budget.waitFor(row, 'by_hand') ??
      (row.blocked_until !== null && row.blocked_until > clock.iso()
        ? { until: row.blocked_until, reason: 'The certificate authority asked to wait.' }
        : undefined)
    if (wait)
      throw new ApiError(
        'RATE_LIMITED',
        `${wait.reason} Try again after ${wait.until}.`,
        undefined,
        Math.max(1, Math.ceil((Date.parse(wait.until) - clock.now()) / 1000)),
      )
  }
  /** Ends what works on a certificate, and forgets it. */
  function erase(row: CertificateRow): void {
    const job = jobs.findBySubject(row.id)
    if (job) jobs.cancel(job.id)
    lifecycle.forget(row)
    deliver(row.project_id)
  }
  /** What was made for a domain that is gone goes to another one of its name, and with the last of them. */
  function release(row: CertificateRow): void {
    const heir = ports
      .domainsAt(row.project_id, namesIn(row))
      .find(
        (domain) =>
          domain.ssl_mode === row.source && namesOfDomain(domain).some((name) => namesIn(row).includes(name)),
      )
    if (!heir) return erase(row)
    repository.setDomain(row.id, heir.id)
    made.ensureFor(heir)
  }

  return {
    list(actor: Actor, query: CertificateQuery) {
      const { rows, total } = selectPage<CertificateRow>(
        db,
        {
          table: 'certificates',
          project_ids: visibleProjects(actor),
          equals: { status: query.status, project_id: query.project_id },
        },
        limits(query),
      )
      return paged({ total, rows: rows.map((row) => view(row, edge.hostnames(row.id))) }, query)
    },
    get: shown,
    /** Issues through ACME, or takes an upload. Answers at once; an authority is asked by a job. */
    create: (actor: Actor, project_id: string, body: NewCertificate): Certificate =>
      shown(made.create(actor, project_id, body)),
    /** Makes a key that never leaves the server, and the request that an authority signs. */
    createCsr: async (actor: Actor, project_id: string, body: NewCsr): Promise<Certificate> =>
      shown(await made.createCsr(actor, project_id, body)),
    /**
     * Begins an attempt now. 409 for one that cannot be renewed here, 429 while the authority would refuse.
     */
    renew: (actor: Actor, id: string): Certificate =>
      db.tx(() => {
        const row = get(id)
        if (row.source === 'upload' || row.source === 'csr')
          throw conflict(
            'An uploaded certificate cannot be renewed here. Upload the new one as another certificate, then delete this one.',
          )
        if (row.source === 'self_signed') lifecycle.selfSign(row)
        else {
          requireBudget(row)
          lifecycle.begin(row)
        }
        audit.record(actor, {
          action: 'certificate.renew',
          resource_type: 'certificate',
          resource_id: id,
          project_id: row.project_id,
          after: { names: namesIn(row) },
        })
        deliver(row.project_id)
        return shown(id)
      }),
    /** Forgets a certificate. 409 while domains would be left without one, unless it is revoked. */
    remove: (actor: Actor, id: string, revoke: boolean): void =>
      db.tx(() => {
        const row = get(id)
        if (row.domain_id !== null && !isAdministrator(actor) && ports.domain(row.domain_id)?.of_installation)
          throw conflict(
            'This is the certificate of the dashboard. It goes when an administrator changes the dashboard domain.',
          )
        const orphans = revoke ? [] : edge.orphans(row)
        if (orphans.length > 0)
          throw conflict(
            `It is the only certificate of ${orphans.slice(0, 5).join(', ')}${orphans.length > 5 ? ' and others' : ''}. Add another one, or change the SSL mode of these domains first.`,
          )
        if (revoke && row.source === 'acme' && row.chain !== null) revocations.begin(actor, row)
        else {
          audit.record(actor, {
            action: 'certificate.delete',
            resource_type: 'certificate',
            resource_id: id,
            project_id: row.project_id,
            before: { names: namesIn(row), source: row.source, fingerprint: row.fingerprint },
          })
          erase(row)
        }
        deliver(row.project_id)
      }),
    /**
     * Follows a domain: makes sure that a verified one has what its SSL mode asks for, and forgets what was
     * made for one that is gone. Idempotent. `project_id` spares looking at all others.
     */
    follow: (domain_id: string, project_id?: string): void =>
      db.tx(() => {
        const domain = ports.domain(domain_id)
        if (domain) made.ensureFor(domain)
        else if (!ports.isThere(domain_id)) for (const row of repository.ofDomain(domain_id)) release(row)
        deliver(project_id)
      }),
    /**
     * Takes to the project of these domains what they alone used in the one that they come from; throws 409 where
     * that is too much. Call it in the transaction of the move.
     */
    moved: (domain_ids: readonly string[], from: string): void =>
      db.tx(() => {
        const domains = domain_ids.flatMap((id) => ports.domain(id) ?? [])
        const left = ports.domains(from)
        const serves = (row: CertificateRow, some: readonly VerifiedDomain[]) =>
          some.flatMap(namesOfDomain).some((name) => namesIn(row).some((own) => covers(own, name)))
        const along = repository.ofProject(from).filter((row) => serves(row, domains) && !serves(row, left))
        for (const { id } of along) repository.move(id, domains[0]!.project_id, clock.iso())
        if (along.some(({ domain_id }) => domain_id === null)) made.requireRoom(domains[0]!.project_id, 0)
        for (const domain of domains) made.ensureFor(domain)
        deliver()
      }),
    /** Every certificate that the edge has to show, for its whole state at the start. */
    forEdge: edge.all,
    /** Hears which of these the edge did not take: they are handed over again by the next pass. */
    refusedByEdge: edge.refused,
    /** Hands over what changed; rejects when the edge does not take it. */
    sync: (): Promise<void> => edge.sync(),
    isServed: edge.isServed,
    /** Names for which the edge shows a certificate now. */
    hostnames: edge.hostnames,
    settled: edge.settled,
    /**
     * Recurring work, every few minutes: renewals, notices, what is left of domains that are gone, what the
     * edge does not show yet.
     */
    async pass(): Promise<{ certificates: number }> {
      db.tx(() => {
        for (const { id, domain_id } of repository.madeForDomains())
          if (!ports.isThere(domain_id)) release(get(id))
      })
      return schedule.pass()
    },
    /** Forgets some of the attempts that no limit looks at any more; returns how many. */
    pruneAttempts: budget.prune,
    rotateAccountKey: accounts.rotateKey,
  }
}
export type Certificates = ReturnType<typeof createCertificates>
