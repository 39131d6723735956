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
  /** Hears of apps whose domains got a certificate, or lost it. */
  served(app_ids: readonly string[]): void
}
/** Attempts for certificates that run at once. */
export const CERTIFICATE_POOL = { certificate: 4 }

type DomainRow = Omit<VerifiedDomain, 'aliases'> & { www: string; counterpart: string | null }
const verified = ({ id, project_id, hostname, ssl_mode, www, counterpart }: DomainRow): VerifiedDomain =>
  ({ id, project_id, hostname, ssl_mode, aliases: counterpart && www !== 'keep' ? [counterpart] : [] })

/** TXT values that every resolver sees which can say anything. */
async function askTxt(dns: Dns, resolvers: readonly string[], name: string): Promise<string[]> {
  const answers = await Promise.all((resolvers.length > 0 ? resolvers : [undefined]).map((resolver) => dns.ask(name, 'TXT', resolver)))
  const [first = [], ...rest] = answers.flatMap((answer) => (answer.outcome === 'failed' ? [] : [answer.outcome === 'found' ? answer.values : []]))
  return first.filter((value) => rest.every((values) => values.includes(value)))
}

/** Certificates as this installation makes them: authority, DNS provider and resolvers of the settings, names of its domains. */
export function createCertification({ kernel, events, jobs, audit, policy, settings, acme, dns, ingress, providers, served }: CertificationParts): Certificates {
  const { db } = kernel
  const client = createGuardedClient(policy)
  const rows = (where: string, ...values: string[]) => (db.sql(`SELECT * FROM domains WHERE status IN ('verified', 'active') ${where}`).all(...values) as DomainRow[]).map(verified)
  return createCertificates({
    ...kernel, events, jobs, audit, acme, ingress,
    ports: {
      rules: settings.acme,
      dnsProvider() {
        const chosen = settings.dnsProvider()
        return chosen === null ? undefined : providers.find(({ name }) => name === chosen.provider)?.create(chosen.config, { client, policy })
      },
      txtValues: (name) => askTxt(dns, settings.dns().resolvers, name),
      domains: (project_id) => (project_id === undefined ? rows('') : rows('AND project_id = ?', project_id)),
      domain: (id) => rows('AND id = ?', id)[0],
      isThere: (id) => db.sql('SELECT 1 FROM domains WHERE id = ?').get(id) !== undefined,
      served: (ids) => served(db.sql('SELECT DISTINCT app_id FROM domains WHERE id IN (SELECT value FROM json_each(?))').pluck().all(JSON.stringify(ids)) as string[]),
    },
  })
}
