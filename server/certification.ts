import type { VerifiedDomain } from '#server/certificates/ports'
import { type Certificates, createCertificates } from '#server/certificates/service'
import type { AuditTrail } from '#server/kernel/audit'
import type { Events } from '#server/kernel/events'
import type { Jobs } from '#server/kernel/jobs/jobs'
import type { Acme } from '#server/platform/acme/acme'
import type { Dns } from '#server/platform/dns/dns'
import type { DnsProviderDescriptor } from '#server/platform/dns-providers/provider'
import type { Ingress } from '#server/platform/ingress/ingress'
import { createGuardedClient } from '#server/platform/outbound/client'
import type { OutboundPolicy } from '#server/platform/outbound/outbound'
import type { Kernel } from '#server/services'
import type { SettingsService } from '#server/settings/service'

export interface CertificationParts {
  kernel: Kernel
  events: Events
  jobs: Jobs
  audit: AuditTrail
  policy: OutboundPolicy
  settings: SettingsService
  acme: Acme
  dns: Dns
  ingress: Ingress
  providers: readonly DnsProviderDescriptor[]
  /** Project that the certificate of the dashboard is listed in. */
  home(): string
  /** Hears of apps whose domains got a certificate, or lost it. */
  served(app_ids: readonly string[]): void
}
/** Attempts for certificates that run at once. */
export const CERTIFICATE_POOL = { certificate: 4 }

type DomainRow = Omit<VerifiedDomain, 'aliases'> & { www: string; counterpart: string | null }
const verified = ({ id, project_id, hostname, ssl_mode, www, counterpart }: DomainRow): VerifiedDomain => ({
  id,
  project_id,
  hostname,
  ssl_mode,
  aliases: counterpart && www !== 'keep' ? [counterpart] : [],
})

/** TXT values that every resolver sees which can say anything. */
async function askTxt(dns: Dns, resolvers: readonly string[], name: string): Promise<string[]> {
  const answers = await Promise.all(
    (resolvers.length > 0 ? resolvers : [undefined]).map((resolver) => dns.ask(name, 'TXT', resolver)),
  )
  const [first = [], ...rest] = answers.flatMap((answer) =>
    answer.outcome === 'failed' ? [] : [answer.outcome === 'found' ? answer.values : []],
  )
  return first.filter((value) => rest.every((values) => values.includes(value)))
}

const dashboardId = (hostname: string) => `dashboard:${hostname}`
export interface Certification extends Certificates {
  /** Brings the certificates for these names of the dashboard, old and new, to what the settings say. */
  followDashboard(...names: (string | null)[]): void
}

/**
 * Certificates as this installation makes them: authority, DNS provider and resolvers of the settings, names
 * of its domains.
 */
export function createCertification({
  kernel,
  events,
  jobs,
  audit,
  policy,
  settings,
  acme,
  dns,
  ingress,
  providers,
  home,
  served,
}: CertificationParts): Certification {
  const { db } = kernel
  const client = createGuardedClient(policy)
  const rows = (where: string, ...values: string[]) =>
    (
      db
        .sql(
          `SELECT id, project_id, hostname, ssl_mode, www, counterpart FROM domains WHERE status IN ('verified', 'active') ${where}`,
        )
        .all(...values) as DomainRow[]
    ).map(verified)
  /**
   * The dashboard's own name counts as a domain that is proven: an administrator has set it, and the
   * authority looks for itself.
   */
  const dashboard = (): VerifiedDomain[] => {
    const { dashboard_domain } = settings.domain()
    return dashboard_domain === null
      ? []
      : [
          {
            id: dashboardId(dashboard_domain),
            project_id: home(),
            hostname: dashboard_domain,
            aliases: [],
            ssl_mode: 'acme',
            of_installation: true,
          },
        ]
  }
  const certificates = createCertificates({
    ...kernel,
    events,
    jobs,
    audit,
    acme,
    ingress,
    ports: {
      rules: settings.acme,
      dnsProvider() {
        const chosen = settings.dnsProvider()
        return chosen === null
          ? undefined
          : providers.find(({ name }) => name === chosen.provider)?.create(chosen.config, { client, policy })
      },
      txtValues: (name) => askTxt(dns, settings.dns().resolvers, name),
      domains: (project_id) => [
        ...(project_id === undefined ? rows('') : rows('AND project_id = ?', project_id)),
        ...dashboard().filter((domain) => project_id === undefined || domain.project_id === project_id),
      ],
      domain: (id) => rows('AND id = ?', id)[0] ?? dashboard().find((domain) => domain.id === id),
      isThere: (id) =>
        dashboard().some((domain) => domain.id === id) ||
        db.sql('SELECT 1 FROM domains WHERE id = ?').get(id) !== undefined,
      served: (ids) =>
        served(
          db
            .sql('SELECT DISTINCT app_id FROM domains WHERE id IN (SELECT value FROM json_each(?))')
            .pluck()
            .all(JSON.stringify(ids)) as string[],
        ),
    },
  })
  const followDashboard = (...names: (string | null)[]) => {
    for (const name of names) if (name !== null) certificates.follow(dashboardId(name))
  }
  return {
    ...certificates,
    followDashboard,
    pass() {
      followDashboard(settings.domain().dashboard_domain)
      return certificates.pass()
    },
  }
}
