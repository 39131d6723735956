import { type Actor, visibleProjects } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { ApiError, conflict, invalid, notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import { orThrow } from '#server/kernel/or-throw'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import type { Route, RouteRedirect } from '#server/platform/ingress/ingress'
import { findLoop, follow, MOST_STEPS, routeBefore } from './chain.ts'
import { unanchored } from './pattern.ts'
import { createRedirectRepository, type RedirectFilter, type RedirectRow } from './repository.ts'
import { createRouteIndex } from './route-index.ts'
import { checkRule, pathAsAsked, targetAsSent, targetOf } from './rule.ts'
import type { NewRedirect, Redirect, RedirectChange, RedirectTest } from './schema.ts'

/** What redirects need of domains; handed in at composition. */
export interface RedirectPorts {
  domain(
    id: string,
  ): { id: string; app_id: string; project_id: string; hostname: string; path: string } | undefined
  /**
   * Routes of all domains of these projects, with their rules, proven or not; undefined means all projects.
   */
  routes(project_ids: readonly string[] | undefined): Route[]
  /** The same of a project, without what has no part in where its rules lead. */
  routesWithRules(project_id: string): Route[]
  /** Applies an app's domains to the edge, after the commit. */
  refreshRoutes(app_id: string): void
}
export interface RedirectOptions {
  db: Db
  clock: Clock
  events: Events
  audit: AuditTrail
  ports: RedirectPorts
}

/**
 * What the edge takes for one domain, and what is looked through, kept and written at each change of a project:
 * rules and their characters.
 */
const MOST = {
  domain: { rules: 1000, characters: 262_144 },
  project: { rules: 5000, characters: 4_194_304 },
} as const

export const ruleOf = (row: RedirectRow): RouteRedirect => ({
  id: row.id,
  kind: row.kind,
  from: row.source,
  to: targetOf({ kind: row.kind, from: row.source, to: row.target }),
  status: row.status,
  keep_query: row.keep_query === 1,
})

/**
 * Throws 422 when a chain of rules of a project never ends. Call it in the transaction of the change, which
 * it takes back.
 */
export function requireNoLoop(routes: readonly Route[], changed: string, field = 'to'): void {
  const loop = findLoop(routes, changed)
  if (!loop) return
  const shown = loop.hops.slice(0, 4).map((hop) => hop.url)
  const message = `this would send clients in a circle: ${[...shown, loop.hops[shown.length - 1]!.location].join(' → ')}${loop.hops.length > 4 ? ' …' : ''}`
  throw new ApiError('VALIDATION_ERROR', `${field}: ${message}`, [{ path: field, message }])
}

/** Throws 422 when the edge hands every request that the rule is meant for to another domain of the name. */
function requireReached(routes: readonly Route[], { domain_id, kind, from }: Redirect): void {
  const other = kind === 'regex' ? undefined : routeBefore(routes, domain_id, from)
  if (other)
    throw invalid(
      'from',
      `is served by another domain, ${other.hostnames[0]}${other.path ?? ''} (${other.id}), whose path is longer, so no request would ever reach the rule. Add it there.`,
    )
}

/** Rules that answer at the edge instead of an app. */
export function createRedirects({ db, clock, events, audit, ports }: RedirectOptions) {
  const repository = createRedirectRepository(db)
  const get = (id: string): RedirectRow => orThrow(repository.find(id), () => notFound('redirect'))
  const view = (row: RedirectRow): Redirect => ({
    id: row.id,
    domain_id: row.domain_id,
    app_id: row.app_id,
    project_id: row.project_id,
    hostname: ports.domain(row.domain_id)?.hostname ?? '',
    kind: row.kind,
    from: row.source,
    to: row.target,
    status: row.status,
    keep_query: row.keep_query === 1,
    priority: row.priority,
    enabled: row.enabled === 1,
    created_at: row.created_at,
    updated_at: row.updated_at,
  })
  const audited = ({ hostname, kind, from, to, status, keep_query, priority, enabled }: Redirect) => ({
    hostname,
    kind,
    from,
    to,
    status,
    keep_query,
    priority,
    enabled,
  })

  /** Tells everybody about a change that is already a row, and takes it back when it makes a loop. */
  const finish = (
    actor: Actor,
    action: 'create' | 'update' | 'delete',
    before: Redirect | null,
    after: Redirect | null,
  ): void => {
    const of = (after ?? before)!
    if (after?.enabled) {
      const routes = ports.routesWithRules(of.project_id)
      requireReached(routes, after)
      requireNoLoop(routes, after.id)
    }
    events.append({
      type: `redirect.${action}d`,
      project_id: of.project_id,
      app_id: of.app_id,
      actor_id: actor.user_id || null,
      payload: {
        redirect_id: of.id,
        domain_id: of.domain_id,
        app_id: of.app_id,
        hostname: of.hostname,
        enabled: after?.enabled ?? false,
      },
    })
    audit.record(actor, {
      action: `redirect.${action}`,
      resource_type: 'redirect',
      resource_id: of.id,
      project_id: of.project_id,
      before: before && audited(before),
      after: after && audited(after),
    })
    db.afterCommit(() => ports.refreshRoutes(of.app_id))
  }
  /**
   * Throws 409 when the domain has a rule from there already, enabled or not: only one of the two would ever
   * answer.
   */
  const requireOnly = (row: RedirectRow): void => {
    const sourceOf = ({ kind, source }: RedirectRow) => (kind === 'regex' ? unanchored(source) : source)
    const other = repository
      .ofKind(row.domain_id, row.kind)
      .find((one) => one.id !== row.id && sourceOf(one) === sourceOf(row))
    if (other)
      throw conflict(
        `The domain has a rule of the kind ${row.kind} from ${other.source} already: ${other.id}${other.enabled ? '' : ', which is turned off'}. Change or delete that one.`,
      )
  }
  /** Throws 409 when a rule that is in its row makes those of its domain or project too many or too long. */
  const requireRoom = ({ domain_id, project_id }: RedirectRow): void => {
    for (const [owner, name] of [
      [{ domain_id }, 'domain'],
      [{ project_id }, 'project'],
    ] as const) {
      const { count, characters } = repository.measure(owner)
      if (count > MOST[name].rules)
        throw conflict(
          `A ${name} may have ${MOST[name].rules} redirects at most. Use a prefix or a pattern for many paths.`,
        )
      if (characters > MOST[name].characters)
        throw conflict(
          `The redirects of a ${name} may have ${MOST[name].characters} characters in all. Use a prefix or a pattern for many paths.`,
        )
    }
  }
  const write = (actor: Actor, before: RedirectRow, row: RedirectRow): Redirect => {
    checkRule(ruleOf(row), ports.domain(row.domain_id)?.path ?? '/')
    if (row.kind !== before.kind || row.source !== before.source) requireOnly(row)
    repository.update(row)
    const added = row.source.length + row.target.length - before.source.length - before.target.length
    if (added > 0) requireRoom(row)
    finish(actor, 'update', view(before), view(row))
    return view(row)
  }

  /** What the edge would answer, over the domains that the caller can see. */
  const test = (actor: Actor, text: string): RedirectTest => {
    const url = new URL(text)
    const index = createRouteIndex(ports.routes(visibleProjects(actor)), MOST_STEPS)
    const { hops, ends } = follow(index, url)
    if (index.is_exhausted)
      throw invalid('test', 'is too long for the patterns of its domain. Try a shorter address.')
    return {
      domain_id: index.routeFor(url)?.id ?? null,
      redirect_id: hops[0]?.redirect_id ?? null,
      location: hops[0]?.location ?? null,
      status: hops[0]?.status ?? null,
      ends,
      hops,
    }
  }

  return {
    requireNoLoop,
    ruled: repository.ruled,
    /** Rules of the domains that the caller can see, newest first; and what an address would be answered. */
    list(actor: Actor, filter: RedirectFilter & { test?: string }, paging: Paging) {
      const { rows, total } = repository.page(visibleProjects(actor), filter, ...limits(paging))
      return {
        ...paged({ rows: rows.map(view), total }, paging),
        test: filter.test === undefined ? null : test(actor, filter.test),
      }
    },
    add: (actor: Actor, { domain_id, from, to, keep_query, enabled, ...rest }: NewRedirect): Redirect =>
      db.tx(() => {
        const domain = orThrow(ports.domain(domain_id), () => notFound('domain'))
        const at = clock.iso()
        const row: RedirectRow = {
          id: newId('rdr'),
          domain_id,
          app_id: domain.app_id,
          project_id: domain.project_id,
          source: pathAsAsked(rest.kind, from),
          target: targetAsSent(to),
          keep_query: Number(keep_query),
          enabled: Number(enabled),
          ...rest,
          created_at: at,
          updated_at: at,
        }
        checkRule(ruleOf(row), domain.path)
        requireOnly(row)
        repository.insert(row)
        requireRoom(row)
        finish(actor, 'create', null, view(row))
        return view(row)
      }),
    change: (
      actor: Actor,
      id: string,
      { from, to, keep_query, enabled, ...rest }: RedirectChange,
    ): Redirect =>
      db.tx(() => {
        const before = get(id)
        return write(actor, before, {
          ...before,
          ...rest,
          source: pathAsAsked(rest.kind ?? before.kind, from ?? before.source),
          target: targetAsSent(to ?? before.target),
          keep_query: Number(keep_query ?? before.keep_query),
          enabled: Number(enabled ?? before.enabled),
          updated_at: clock.iso(),
        })
      }),
    /** Turns a rule on or off; without `enabled`, to the other than it is. */
    toggle: (actor: Actor, id: string, enabled?: boolean): Redirect =>
      db.tx(() => {
        const before = get(id)
        const desired = enabled === undefined ? 1 - before.enabled : Number(enabled)
        return desired === before.enabled
          ? view(before)
          : write(actor, before, { ...before, enabled: desired, updated_at: clock.iso() })
      }),
    /** Throws 409 when the rules that came with an app are too many for its project. Part of the move. */
    moved(app_id: string): void {
      const [came] = repository.page(undefined, { app_id }, 1, 0).rows
      if (came) requireRoom(came)
    },
    remove: (actor: Actor, id: string): void =>
      db.tx(() => {
        const row = get(id)
        const before = view(row)
        repository.delete(id)
        finish(actor, 'delete', before, null)
      }),
    /**
     * Enabled rules of these domains, of each in the order in which they are tried: a change looks at
     * hundreds of domains.
     */
    rulesOf(domain_ids: readonly string[]): (domain_id: string) => RouteRedirect[] {
      const by_domain = Map.groupBy(repository.enabled(domain_ids), (row) => row.domain_id)
      return (domain_id) => (by_domain.get(domain_id) ?? []).map(ruleOf)
    },
  }
}
export type Redirects = ReturnType<typeof createRedirects>
