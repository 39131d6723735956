import { invalid } from '#server/kernel/errors'
import { readHostname, type ReservedNames, unreachableReason } from './hostname.ts'
import type { DomainRepository } from './repository.ts'

/** Names that are told of several that are taken. */
const MOST_NAMED = 3
const isWithin = (name: string, parent: string) => name === parent || name.endsWith(`.${parent}`)
const bareOf = (hostname: string) => hostname.replace(/^\*\./, '')
/** A name and those above it. */
function namesFrom(hostname: string): string[] {
  const labels = hostname.split('.')
  return labels.map((_, at) => labels.slice(at).join('.'))
}

/**
 * What an administrator may name the installation after: nothing that a project has proven to be its own.
 * Call these in the transaction of the change.
 */
export interface InstallationNamePorts {
  reserved(): ReservedNames
  /** Whether there are projects beside this one. */
  hasOtherProjects(project_id: string): boolean
}

export function createInstallationNames(
  repository: DomainRepository,
  { reserved, hasOtherProjects }: InstallationNamePorts,
) {
  /**
   * Automatic names below this base domain that something else has, or that lie in the names of another
   * project.
   */
  const takenBelow = (base_domain: string): string[] => {
    const claims = new Set<string>()
    /** Projects by the names that they have, and by those that lie above these. */
    const [owners, above] = [new Map<string, Set<string>>(), new Map<string, Set<string>>()]
    const add = (to: Map<string, Set<string>>, name: string, project_id: string) =>
      to.set(name, (to.get(name) ?? new Set()).add(project_id))
    for (const { hostname, project_id } of repository.proven()) {
      claims.add(hostname)
      add(owners, bareOf(hostname), project_id)
      for (const name of namesFrom(bareOf(hostname))) add(above, name, project_id)
    }
    const hasOther = (found: ReadonlySet<string> | undefined, project_id: string) =>
      found !== undefined && (found.size > 1 || !found.has(project_id))
    const { dashboard_domains } = reserved()
    return repository.automatic().flatMap(({ hostname, project_id }) => {
      const desired = `${hostname.slice(0, hostname.indexOf('.'))}.${base_domain}`
      const is_taken =
        dashboard_domains.includes(desired) ||
        claims.has(desired) ||
        hasOther(above.get(desired), project_id) ||
        namesFrom(desired).some((name) => hasOther(owners.get(name), project_id))
      return is_taken ? [desired] : []
    })
  }
  return {
    /**
     * Throws 422 for a base domain below which the names of all apps cannot be, or would lie in the domain of
     * one project.
     */
    requireBaseDomain(base_domain: string): void {
      const unreachable = unreachableReason(base_domain)
      // Names below localhost are what an installation without a public address has.
      if (unreachable !== undefined && !isWithin(base_domain, 'localhost'))
        throw invalid('base_domain', unreachable)
      const above = repository
        .proven()
        .find(
          ({ hostname, project_id }) =>
            isWithin(base_domain, bareOf(hostname)) && hasOtherProjects(project_id),
        )
      if (above)
        throw invalid(
          'base_domain',
          `is or lies below ${above.hostname}, a domain of one project; apps of others would get names there. Remove that domain first, or choose another name.`,
        )
      const taken = takenBelow(base_domain)
      if (taken.length === 0) return
      const more = taken.length > MOST_NAMED ? ` and ${taken.length - MOST_NAMED} more` : ''
      throw invalid(
        'base_domain',
        `would give apps names that are taken: ${taken.slice(0, MOST_NAMED).join(', ')}${more}. Remove those domains or rename the apps first.`,
      )
    },
    /**
     * Throws 422 for a name of the dashboard that leads nobody here, or that an app has or a wildcard covers.
     */
    requireDashboardDomain(hostname: string | null): void {
      if (hostname === null) return
      const verdict = readHostname(hostname)
      if ('refused' in verdict) throw invalid('dashboard_domain', verdict.refused)
      if (repository.having([hostname]).length > 0)
        throw invalid('dashboard_domain', 'is a domain of an app. Remove it there first.')
      const [wildcard] = repository.having([hostname.replace(/^[^.]*/, '*')])
      if (wildcard)
        throw invalid(
          'dashboard_domain',
          `is covered by ${wildcard.hostname}, a domain of an app. Remove it there first.`,
        )
    },
  }
}
