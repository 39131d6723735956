import { ApiError, invalid } from '#server/kernel/errors'
import { checkRoute } from '#server/platform/ingress/check'
import { IngressError, type Route } from '#server/platform/ingress/ingress'
import { reservedReason } from './hostname.ts'
import type { DomainPorts } from './ports.ts'
import { type DomainRepository, type DomainRow, isProven } from './repository.ts'
import { plannedRoutes } from './routes.ts'

/** Refuses what a domain cannot be, before it is kept: against its own rules, its redirects and the edge. */
export function createDomainRules(repository: DomainRepository, ports: DomainPorts) {
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
  const plan = (rows: DomainRow[]): Route[] =>
    plannedRoutes(
      rows.toSorted((a, b) => Number(isProven(b)) - Number(isProven(a))),
      { addresses: [], port: 0, redirects: rulesOf(rows), isSecured: () => true },
    )
  /**
   * The routes of all domains of these projects as they would be, proven or not: of two projects that want a
   * name the one that has it comes first.
   */
  const planned = (project_ids: readonly string[] | undefined): Route[] =>
    plan(repository.placesOf(project_ids))
  /** The same of a project, without what has no part in where its redirects lead: it may have many domains. */
  const plannedWithRules = (project_id: string): Route[] =>
    plan(repository.placesBeside(project_id, ports.ruled(project_id)))
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
    ports.requireNoLoop(plannedWithRules(row.project_id), row.id)
  }
  const requireUnreserved = ({ hostname, counterpart }: DomainRow) => {
    const refused = reservedReason(hostname, ports.reserved())
    if (refused !== undefined) throw invalid('hostname', refused)
    const other = counterpart === null ? undefined : reservedReason(counterpart, ports.reserved())
    if (other !== undefined) throw invalid('www', `would take ${counterpart}, which ${other}`)
  }
  return { checkRules, checkReach, checkPlan, requireUnreserved, rulesOf, planned, plannedWithRules }
}
