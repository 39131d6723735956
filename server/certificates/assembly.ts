import type { Domains } from '#server/domains/service'
import type { Base } from '#server/platform/base'
import type { Dns } from '#server/platform/dns/dns'
import type { Projects } from '#server/projects/service'
import type { SettingsService } from '#server/settings/service'
import type { CertificatesDomain } from './contract.ts'
import type { CertificatePorts, VerifiedDomain } from './ports.ts'
import { createCertificates } from './service.ts'

export interface CertificateNeeds {
  domains: Pick<Domains, 'proven' | 'provenAt' | 'provenById' | 'exists' | 'appsOf'>
  deployments: { refreshRoutesSoon(app_id: string): void }
  projects: Pick<Projects, 'default'>
  settings: Pick<SettingsService, 'acme' | 'dns' | 'dnsProvider' | 'domain'>
}

const verified = ({
  www,
  counterpart,
  ...domain
}: ReturnType<Domains['proven']>[number]): VerifiedDomain => ({
  ...domain,
  aliases: counterpart && www !== 'keep' ? [counterpart] : [],
})

/** TXT values that every resolver sees which can say anything. */
async function txtValues(dns: Dns, resolvers: readonly string[], name: string): Promise<string[]> {
  const answers = await Promise.all(
    (resolvers.length > 0 ? resolvers : [undefined]).map((resolver) => dns.ask(name, 'TXT', resolver)),
  )
  const [first = [], ...rest] = answers.flatMap((answer) => {
    if (answer.outcome === 'failed') return []
    return [answer.outcome === 'found' ? answer.values : []]
  })
  return first.filter((value) => rest.every((values) => values.includes(value)))
}

const dashboardId = (hostname: string) => `dashboard:${hostname}`

/**
 * Certificates as this installation makes them: authority, DNS provider and resolvers of the settings, names
 * of its domains and of its dashboard.
 */
export function createCertificatesDomain(base: Base, use: CertificateNeeds): CertificatesDomain {
  const { policy, client, dns, dns_providers } = base
  /**
   * The dashboard's own name counts as a domain that is proven: an administrator has set it, and the
   * authority looks for itself.
   */
  const dashboard = (): VerifiedDomain[] => {
    const { dashboard_domain } = use.settings.domain()
    if (dashboard_domain === null) return []
    return [
      {
        id: dashboardId(dashboard_domain),
        project_id: use.projects.default(),
        hostname: dashboard_domain,
        aliases: [],
        ssl_mode: 'acme',
        of_installation: true,
      },
    ]
  }
  const ports: CertificatePorts = {
    rules: () => use.settings.acme(),
    dnsProvider() {
      const chosen = use.settings.dnsProvider()
      return chosen === null
        ? undefined
        : dns_providers
            .find(({ name }) => name === chosen.provider)
            ?.create(chosen.config, { client, policy })
    },
    txtValues: (name) => txtValues(dns, use.settings.dns().resolvers, name),
    domains: (project_id) => [
      ...use.domains.proven(project_id).map(verified),
      ...dashboard().filter((domain) => project_id === undefined || domain.project_id === project_id),
    ],
    domainsAt: (project_id, names) => [
      ...use.domains.provenAt(project_id, names).map(verified),
      ...dashboard().filter((domain) => domain.project_id === project_id),
    ],
    domain(id) {
      const row = use.domains.provenById(id)
      return row ? verified(row) : dashboard().find((domain) => domain.id === id)
    },
    isThere: (id) => dashboard().some((domain) => domain.id === id) || use.domains.exists(id),
    served: (ids) => use.domains.appsOf(ids).forEach((id) => use.deployments.refreshRoutesSoon(id)),
  }
  const certificates = createCertificates({ ...base, ports })
  const followDashboard = (...names: (string | null)[]) => {
    for (const name of names) if (name !== null) certificates.follow(dashboardId(name))
  }
  return {
    ...certificates,
    followDashboard,
    pass() {
      followDashboard(use.settings.domain().dashboard_domain)
      return certificates.pass()
    },
  }
}
