import { randomBytes } from 'node:crypto'
import { type Actor, isAdministrator, visibleProjects } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { ApiError, conflict, forbidden, invalid, notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import type { Log } from '#server/kernel/log'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import type { Wanted } from '#server/kernel/page'
import type { Dns } from '#server/platform/dns/dns'
import { checkRoute } from '#server/platform/ingress/check'
import { IngressError, type Route, type RouteRedirect } from '#server/platform/ingress/ingress'
import { createAutomaticDomains } from './automatic.ts'
import { createDomainChecks } from './checks.ts'
import { createDomainCopies } from './copies.ts'
import { type ReservedNames, reservedReason } from './hostname.ts'
import { createInstallationNames } from './installation-names.ts'
import { createOwnership } from './ownership.ts'
import { createDomainRepository, type DomainColumns, type DomainRow } from './repository.ts'
import { requireRoom } from './room.ts'
import { plannedRoutes, type RouteParts, routesOf } from './routes.ts'
import type { Domain, DomainChange, NewDomain } from './schema.ts'
import type { Expected } from './verification.ts'
import { auditedOf, columnsOf, type DomainSurroundings, rulesOfChange, viewOf } from './view.ts'

/** What domains need of others; handed in at composition. */
export interface DomainPorts {
  app(id: string): { id: string; name: string; project_id: string; status: string } | undefined
  /** Applies an app's domains to the edge, now or as soon as it can be reached. Called after the commit. */
  refreshRoutes(app_id: string): void
  /**
   * Hears of a proven domain whose mode asks for a certificate, and of one that does no more. Called after
   * the commit.
   */
  certify(domain: Domain): void
  /** Takes certificates of domains along to another project; throws 409 when they cannot be there. */
  certificatesMoved(domain_ids: readonly string[], from_project_id: string): void
  /** Whether the edge has a certificate for a name. */
  isSecured(hostname: string): boolean
  /** Enabled rules of these domains, of each in the order in which they are tried. */
  redirects(domain_ids: readonly string[]): (domain_id: string) => RouteRedirect[]
  /** Throws 422 when these routes would send clients in a circle. */
  requireNoLoop(routes: readonly Route[]): void
  reserved(): ReservedNames
  /** Whether there are projects beside this one. */
  hasOtherProjects(project_id: string): boolean
  /** Most domains of a project beside automatic ones; undefined when nobody has set one. */
  quota(project_id: string): number | undefined
  /** Where names should lead. */
  expected(): Expected
  automaticMode(): 'off' | 'acme'
  /** Resolvers to ask; empty means the system's. */
  resolvers(): readonly string[]
}
export interface DomainOptions {
  db: Db
  clock: Clock
  log: Log
  events: Events
  audit: AuditTrail
  dns: Dns
  ports: DomainPorts /** Ports of the edge, for addresses. */
  http_port: number
  https_port: number
}

export function createDomains(options: DomainOptions) {
  const { db, clock, events, audit, ports, http_port, https_port } = options
  const repository = createDomainRepository(db)
  const ownership = createOwnership(repository, clock)
  const surroundings: DomainSurroundings = {
    expected: ports.expected,
    isSecured: ports.isSecured,
    urlOf: (hostname, secure) =>
      secure
        ? `https://${hostname}${https_port === 443 ? '' : `:${https_port}`}`
        : `http://${hostname}${http_port === 80 ? '' : `:${http_port}`}`,
  }
  const names = createInstallationNames(repository, ports)
  const view = (row: DomainRow) => viewOf(row, surroundings)
  const get = (id: string): DomainRow =>
    repository.find(id) ??
    (() => {
      throw notFound('domain')
    })()
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
  const isProven = (row: DomainRow) => row.status === 'verified' || row.status === 'active'
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
    appName: (app_id) => ports.app(app_id)!.name,
    reserved: ports.reserved,
    automaticMode: ports.automaticMode,
    certify(id) {
      const row = repository.find(id)
      if (row && row.ssl_mode !== 'off') ports.certify(view(row))
    },
  })

  /** Rules that need others to make sense. */
  const checkRules = (row: DomainRow) => {
    if (row.www !== 'keep' && row.kind !== 'custom')
      throw invalid(
        'www',
        row.kind === 'wildcard'
          ? 'does not go with a wildcard. Add the two names themselves.'
          : 'does not go with the automatic name. Add a domain of your own.',
      )
    if (row.www !== 'keep' && row.path !== '/')
      throw invalid('www', 'is about whole names, so it goes with the path / only.')
    if (row.kind === 'automatic' && row.path !== '/')
      throw invalid('path', 'must stay / for the automatic name. Add a domain of your own.')
    if (row.strip_path && row.path === '/') throw invalid('strip_path', 'needs a path to take off.')
    if (
      JSON.parse(row.headers) &&
      row.hsts &&
      Object.keys(JSON.parse(row.headers) as object).some(
        (name) => name.toLowerCase() === 'strict-transport-security',
      )
    )
      throw invalid('hsts', 'and a header Strict-Transport-Security cannot both be set.')
  }
  const rulesOf = (rows: readonly DomainRow[]) => ports.redirects(rows.map(({ id }) => id))
  /**
   * The routes of all domains of these projects as they would be, proven or not: of two projects that want a
   * name the one that has it comes first.
   */
  const planned = (project_ids: readonly string[] | undefined): Route[] => {
    const rows = repository.ofProjects(project_ids).sort((a, b) => Number(isProven(b)) - Number(isProven(a)))
    return plannedRoutes(rows, {
      addresses: [],
      port: 0,
      redirects: rulesOf(rows),
      isSecured: () => true,
    })
  }
  /** A rule outside of the domain's path would never get a request. */
  const checkReach = ({ id, path }: DomainRow) => {
    const lost =
      path === '/'
        ? undefined
        : ports
            .redirects([id])(id)
            .find(({ kind, from }) => kind !== 'regex' && from !== path && !from.startsWith(`${path}/`))
    if (lost)
      throw invalid(
        'path',
        `would leave the redirect from ${lost.from} without requests. Change or delete that one first.`,
      )
  }
  /** What a change would make of the edge: refused with 422 before anybody depends on it. */
  const checkPlan = (row: DomainRow) => {
    try {
      for (const route of plannedRoutes([row], {
        addresses: [],
        port: 0,
        redirects: rulesOf([row]),
        isSecured: ports.isSecured,
      }))
        checkRoute(route)
    } catch (error) {
      if (error instanceof IngressError) throw new ApiError('VALIDATION_ERROR', error.message)
      throw error
    }
    ports.requireNoLoop(planned([row.project_id]))
  }
  const requireUnreserved = ({ hostname, counterpart }: DomainRow) => {
    const refused = reservedReason(hostname, ports.reserved())
    if (refused !== undefined) throw invalid('hostname', refused)
    const other = counterpart === null ? undefined : reservedReason(counterpart, ports.reserved())
    if (other !== undefined) throw invalid('www', `would take ${counterpart}, which ${other}`)
  }
  const requireUsable = (app_id: string) => {
    const app =
      ports.app(app_id) ??
      (() => {
        throw notFound('app')
      })()
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
    requireRoom(repository, app, ports.quota(app.project_id))
    repository.insert(row)
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
    exists: (id: string): boolean => repository.projectOf(id) !== undefined,
    appsOf: repository.appsOf,
    planned,
    find: repository.find,
    list(actor: Actor, filter: { app_id?: Wanted; status?: Wanted }, paging: Paging) {
      const { rows, total } = repository.page(visibleProjects(actor), filter, ...limits(paging))
      return paged({ total, rows: rows.map(view) }, paging)
    },
    get: (id: string): Domain => view(get(id)),
    /**
     * Adds a name to an app; it is looked up at once in the background and serves as soon as DNS proves it.
     */
    add(actor: Actor, { app_id, hostname, ssl_mode, end_cool_down, ...rules }: NewDomain): Domain {
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
          ...withoutUndefined(columnsOf(hostname, rules)),
        }
        insertRow(actor, app, row, end_cool_down)
        return view(row)
      })
    },
    /** Changes the rules of a domain; a pair with and without `www` is proven before it is claimed. */
    async change(actor: Actor, id: string, change: DomainChange): Promise<Domain> {
      const before = get(id)
      const wanted = columnsOf(before.hostname, rulesOfChange(change, before))
      checkRules({ ...before, ...withoutUndefined(wanted) })
      if (wanted.counterpart && wanted.counterpart !== before.counterpart && isProven(before))
        await checks.requireProof({ ...before, counterpart: wanted.counterpart })
      return db.tx(() => {
        const row: DomainRow = { ...get(id), ...withoutUndefined(wanted) }
        requireUsable(row.app_id)
        checkRules(row)
        if (wanted.counterpart) requireUnreserved(row)
        if (row.kind !== 'automatic' && row.status !== 'failed') ownership.require(row)
        repository.update(id, wanted, clock.iso())
        const after = get(id)
        checkReach(after)
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

const withoutUndefined = <T extends object>(value: T) =>
  Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>
  }
