import { parse } from 'tldts'
import type { Addresses } from '#server/addresses'
import { createDomains, type DomainPorts, type Domains } from '#server/domains/service'
import type { AuditTrail } from '#server/kernel/audit'
import type { Events } from '#server/kernel/events'
import type { Dns } from '#server/platform/dns/dns'
import { createRedirects, type Redirects, requireNoLoop } from '#server/redirects/service'
import type { Kernel } from '#server/services'
import type { SettingsService } from '#server/settings/service'

export interface NameParts
  extends Pick<DomainPorts, 'app' | 'refreshRoutes' | 'certify' | 'isSecured' | 'quota'> {
  kernel: Kernel
  events: Events
  audit: AuditTrail
  dns: Dns
  addresses: Addresses
  settings: SettingsService
}

/** Below these anybody gets names for the asking, so an alias to one says nothing about this server. */
const SHARED_BASES = /(^|\.)(localhost|sslip\.io|nip\.io)$/

/** Host names of apps and the rules that answer under them: domains and redirects need each other. */
export function createNames({
  kernel,
  events,
  audit,
  dns,
  addresses,
  settings,
  app,
  refreshRoutes,
  certify,
  isSecured,
  quota,
}: NameParts): { domains: Domains; redirects: Redirects } {
  const { config, db, clock, log } = kernel
  const domains: Domains = createDomains({
    db,
    clock,
    log,
    events,
    audit,
    dns,
    http_port: config.http_port,
    https_port: config.https_port,
    ports: {
      app,
      refreshRoutes,
      certify,
      isSecured,
      quota,
      reserved: () => ({
        base_domain: addresses.base_domain(),
        dashboard_domains: [new URL(addresses.public_url()).hostname],
      }),
      expected() {
        const base_domain = addresses.base_domain()
        const { public_addresses } = settings.dns()
        return {
          addresses: public_addresses.length > 0 ? public_addresses : addresses.of_server(),
          ...(SHARED_BASES.test(base_domain) ? {} : { base_domain }),
        }
      },
      automaticMode: () =>
        settings.dns().wildcard &&
        !SHARED_BASES.test(addresses.base_domain()) &&
        parse(addresses.base_domain()).isIcann
          ? 'acme'
          : 'off',
      resolvers: () => settings.dns().resolvers,
      redirects: (domain_ids) => redirects.rulesOf(domain_ids),
      requireNoLoop: (routes) => requireNoLoop(routes, 'www'),
    },
  })
  const redirects = createRedirects({
    db,
    clock,
    events,
    audit,
    ports: { domain: domains.find, routes: domains.planned, refreshRoutes },
  })
  return { domains, redirects }
}
