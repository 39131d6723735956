import { randomBytes } from 'node:crypto'
import { type Actor, isAdministrator, visibleProjects } from '#server/kernel/access'
import { conflict, forbidden, invalid, notFound } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import { orThrow } from '#server/kernel/or-throw'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import type { Route } from '#server/platform/ingress/ingress'
import { createAutomaticDomains } from './automatic.ts'
import { createDomainChecks } from './checks.ts'
import { createDomainCopies } from './copies.ts'
import { createInstallationNames } from './installation-names.ts'
import { createOwnership } from './ownership.ts'
import type { DomainOptions } from './ports.ts'
import { createDomainRepository, type DomainColumns, type DomainRow, isProven } from './repository.ts'
import { createDomainRules } from './rules.ts'
import { requireQuota, requireRoom, requireRoomFor } from './quota.ts'
import { type RouteParts, routesOf } from './routes.ts'
import type { Domain, DomainChange, NewDomain } from './schema.ts'
import {
  auditedOf,
  columnsOf,
  type DomainSurroundings,
  rulesOfChange,
  urlsOn,
  viewOf,
  withoutUndefined,
} from './view.ts'

export function createDomains(options: DomainOptions) {
  const { db, clock, events, audit, ports } = options
  const repository = createDomainRepository(db)
  const ownership = createOwnership(repository, clock)
  const surroundings: DomainSurroundings = {
    expected: ports.expected,
    isSecured: ports.isSecured,
    urlOf: urlsOn(options),
  }
  const names = createInstallationNames(repository, ports)
  const view = (row: DomainRow) => viewOf(row, surroundings)
  const get = (id: string): DomainRow => orThrow(repository.find(id), () => notFound('domain'))
  const note = (row: DomainRow, type: string, payload: Record<string, unknown> = {}, actor?: Actor) =>
    events.append({
      type: `domain.${type}`,
      project_id: row.project_id,
      app_id: row.app_id,
      actor_id: actor?.user_id || null,
      payload: {
        domain_id: row.id,
        app_id: row.app_id,
        hostname: row.hostname,
        status: row.status,
        ...payload,
      },
    })
  const rules = createDomainRules(repository, ports)
  const { checkRules, checkPlan, requireUnreserved, rulesOf, planned, plannedWithRules } = rules
  const published = (row: DomainRow) =>
    db.afterCommit(() => {
      ports.refreshRoutes(row.app_id)
      const now = repository.find(row.id)
      if (now && isProven(now)) ports.certify(view(now))
    })
  const checks = createDomainChecks({ ...options, repository, ownership, note, published })
  const automatic = createAutomaticDomains({
    db,
    clock,
    repository,
    reserved: ports.reserved,
    automaticMode: ports.automaticMode,
    certify(id) {
      const row = repository.find(id)
      if (row && row.ssl_mode !== 'off') ports.certify(view(row))
    },
  })

  const requireUsable = (app_id: string) => {
    const app = orThrow(ports.app(app_id), () => notFound('app'))
    if (app.status === 'deleting')
      throw conflict('Cannot change the domains of an app while it is being deleted.')
    return app
  }

  /** A name that an app gets; part of the caller's transaction. */
  const insertRow = (
    actor: Actor,
    app: { id: string; project_id: string; name: string; status: string },
    row: DomainRow,
    end_cool_down?: boolean,
  ): void => {
    requireUnreserved(row)
    checkRules(row)
    if (end_cool_down && !isAdministrator(actor))
      throw forbidden('Only an administrator may end the time that a removed name is kept for.')
    if (end_cool_down) ownership.endCoolDowns(row)
    ownership.require(row)
    requireQuota(repository, app, ports.quota(app.project_id))
    repository.insert(row)
    requireRoom(repository, row)
    checkPlan(row)
    note(row, 'created', {}, actor)
    audit.record(actor, {
      action: 'domain.create',
      resource_type: 'domain',
      resource_id: row.id,
      project_id: row.project_id,
      after: { ...auditedOf(row), ...(end_cool_down ? { end_cool_down } : {}) },
    })
    db.afterCommit(() => checks.soon(row.id))
  }
  const blankRow = (app: { id: string; project_id: string }, hostname: string): DomainRow => {
    const at = clock.iso()
    return {
      ...automatic.blank,
      id: newId('dom'),
      app_id: app.id,
      project_id: app.project_id,
      hostname,
      kind: hostname.startsWith('*.') ? 'wildcard' : 'custom',
      status: 'pending',
      // No public authority certifies a name with an underscore.
      ssl_mode: hostname.includes('_') ? 'off' : 'acme',
      token: randomBytes(20).toString('hex'),
      next_check_at: at,
      created_at: at,
      updated_at: at,
    }
  }
  /** Rules of a domain that come from a copy. */
  const replaceRules = (actor: Actor, id: string, columns: DomainColumns): void =>
    db.tx(() => {
      const before = get(id)
      const row = { ...before, ...columns }
      checkRules(row)
      if (columns.counterpart) requireUnreserved(row)
      if (row.status !== 'failed') ownership.require(row)
      repository.update(id, columns, clock.iso())
      const after = get(id)
      requireRoom(repository, after, before)
      checkPlan(after)
      note(after, 'updated', { changed: Object.keys(columns) }, actor)
      audit.record(actor, {
        action: 'domain.update',
        resource_type: 'domain',
        resource_id: id,
        project_id: row.project_id,
        before: auditedOf(before),
        after: auditedOf(after),
      })
      published(after)
    })
  const copies = createDomainCopies({
    ofApp: repository.ofApp,
    insert: (actor, app_id, { hostname, ...columns }) =>
      db.tx(() => {
        const app = requireUsable(app_id)
        insertRow(actor, app, { ...blankRow(app, hostname), ...columns } as DomainRow)
      }),
    update: replaceRules,
  })

  return {
    checks,
    copies,
    addAutomatic: automatic.addAutomatic,
    followWeb: (app: { id: string; name: string; project_id: string }, has_web: boolean) =>
      automatic.followWeb(app, has_web),
    followServices: automatic.followServices,
    renameAutomatic: automatic.renameAutomatic,
    /** Where a service of a compose app answers; undefined for one without a name. */
    ofService(app_id: string, service: string | null): { hostname: string; url: string } | undefined {
      const rows = repository.ofApp(app_id).filter((row) => row.service === service)
      const row = rows.find(({ kind }) => kind !== 'automatic' && kind !== 'wildcard') ?? rows[0]
      return row && { hostname: row.hostname, url: view(row).url }
    },
    /**
     * Moves the automatic names of all apps below the base domain, and returns the apps; throws 422 when some
     * name cannot be had.
     */
    rebase(): string[] {
      names.requireBaseDomain(ports.reserved().base_domain)
      return automatic.rebase()
    },
    automaticOf(app_id: string): { hostname: string; url: string } {
      const row = repository.automaticOf(app_id)
      return row ? { hostname: row.hostname, url: view(row).url } : { hostname: '', url: '' }
    },
    /** Proven domains, for certificates: all, or those of one project. */
    proven: repository.provenNames,
    provenById: repository.provenById,
    provenAt: repository.provenAt,
    exists: (id: string): boolean => repository.projectOf(id) !== undefined,
    appsOf: repository.appsOf,
    planned,
    plannedWithRules,
    find: repository.find,
    list(actor: Actor, filter: Parameters<typeof repository.page>[1], paging: Paging) {
      const { rows, total } = repository.page(visibleProjects(actor), filter, ...limits(paging))
      return paged({ total, rows: rows.map(view) }, paging)
    },
    get: (id: string): Domain => view(get(id)),
    /**
     * Adds a name to an app; it is looked up at once in the background and serves as soon as DNS proves it.
     */
    add(actor: Actor, { app_id, hostname, ssl_mode, end_cool_down, ...given }: NewDomain): Domain {
      return db.tx(() => {
        const app = requireUsable(app_id)
        const shared_mode = repository.ofNames([hostname], app.project_id)[0]?.ssl_mode
        if (shared_mode !== undefined && ssl_mode !== undefined && ssl_mode !== shared_mode)
          throw invalid(
            'ssl_mode',
            `must be ${shared_mode} or left out: all paths of a name share one certificate, and this name has that mode. Change the mode of the name first.`,
          )
        const row: DomainRow = {
          ...blankRow(app, hostname),
          ...withoutUndefined({ ssl_mode: ssl_mode ?? shared_mode }),
          ...withoutUndefined(columnsOf(hostname, given)),
        }
        insertRow(actor, app, row, end_cool_down)
        return view(row)
      })
    },
    /** Changes the rules of a domain; a pair with and without `www` is proven before it is claimed. */
    async change(actor: Actor, id: string, change: DomainChange): Promise<Domain> {
      const before = get(id)
      const desired = columnsOf(before.hostname, rulesOfChange(change, before))
      checkRules({ ...before, ...withoutUndefined(desired) })
      if (desired.counterpart && desired.counterpart !== before.counterpart && isProven(before))
        await checks.requireProof({ ...before, counterpart: desired.counterpart })
      return db.tx(() => {
        const row: DomainRow = { ...get(id), ...withoutUndefined(desired) }
        requireUsable(row.app_id)
        checkRules(row)
        if (desired.counterpart) requireUnreserved(row)
        if (row.kind !== 'automatic' && row.status !== 'failed') ownership.require(row)
        repository.update(id, desired, clock.iso())
        const after = get(id)
        requireRoom(repository, after, before)
        rules.checkReach(after)
        checkPlan(after)
        note(after, 'updated', { changed: Object.keys(change) }, actor)
        audit.record(actor, {
          action: 'domain.update',
          resource_type: 'domain',
          resource_id: id,
          project_id: row.project_id,
          before: auditedOf(before),
          after: auditedOf(after),
        })
        published(after)
        return view(after)
      })
    },
    /**
     * Sets the mode of a name: clients choose a certificate by it alone, so all its paths change together.
     */
    setSslMode: (actor: Actor, id: string, ssl_mode: Domain['ssl_mode']): Domain =>
      db.tx(() => {
        const { app_id, hostname, counterpart, project_id } = get(id)
        requireUsable(app_id)
        for (const before of repository
          .ofNames(counterpart === null ? [hostname] : [hostname, counterpart], project_id)
          .filter((row) => row.id === id || row.ssl_mode !== ssl_mode)) {
          repository.update(before.id, { ssl_mode }, clock.iso())
          const row = get(before.id)
          checkPlan(row)
          note(row, 'updated', { changed: ['ssl_mode'] }, actor)
          audit.record(actor, {
            action: 'domain.ssl_mode',
            resource_type: 'domain',
            resource_id: row.id,
            project_id,
            before: { ssl_mode: before.ssl_mode },
            after: { ssl_mode },
          })
          published(row)
        }
        return view(get(id))
      }),
    remove: (actor: Actor, id: string): void =>
      db.tx(() => {
        const row = get(id)
        if (row.kind === 'automatic')
          throw conflict(
            'The automatic name belongs to the app and goes with it. Add a domain of your own beside it.',
          )
        ownership.release(row)
        repository.delete(id)
        note(row, 'deleted', {}, actor)
        audit.record(actor, {
          action: 'domain.delete',
          resource_type: 'domain',
          resource_id: id,
          project_id: row.project_id,
          before: auditedOf(row),
        })
        db.afterCommit(() => {
          ports.refreshRoutes(row.app_id)
          ports.certify({ ...view(row), ssl_mode: 'off' })
        })
      }),
    /** Forgets some of the names that no project is kept from any more; returns how many. */
    pruneCoolDowns: (): number => repository.pruneCoolDowns(clock.iso()),
    /** Removes the names of an app that goes; its project alone may take them again for a while. */
    releaseAll(app_id: string): void {
      for (const row of repository.ofApp(app_id)) ownership.release(row)
    },
    /**
     * Takes along the domains of an app that has moved to another project, and their certificates; throws 409
     * when they cannot be there. Call it in the transaction of the move.
     */
    moved(app_id: string, from_project_id: string): void {
      const rows = repository.ofApp(app_id)
      requireRoomFor(repository, rows, ports.quota)
      for (const row of rows) {
        if (row.kind === 'automatic' || row.status === 'failed') continue
        ownership.require(row, from_project_id)
        ownership.handOver(row, from_project_id)
      }
      ports.certificatesMoved(
        rows.map(({ id }) => id),
        from_project_id,
      )
    },
    requireDashboardDomain: names.requireDashboardDomain,
    /** The proven domain that covers a name, for certificates. */
    verifiedDomain(hostname: string): Domain | undefined {
      const row = repository.provenFor(hostname)
      return row && view(row)
    },
    /** What the edge serves for an app: one route for each of its domains, to these instances. */
    routes(app_id: string, target: Pick<RouteParts, 'addresses' | 'port' | 'services'>): Route[] {
      const rows = repository.ofApp(app_id)
      return routesOf(rows, { ...target, redirects: rulesOf(rows), isSecured: ports.isSecured })
    },
    /** Hears of domains that the edge serves now. */
    activate: (ids: readonly string[]): void =>
      db.tx(() => {
        for (const row of repository.setStatuses(ids, 'verified', 'active', clock.iso())) note(row, 'active')
      }),
  }
}
export type Domains = ReturnType<typeof createDomains>
