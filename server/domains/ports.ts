import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { ClockTrust } from '#server/kernel/clock-trust'
import type { Db } from '#server/kernel/db'
import type { Events } from '#server/kernel/events'
import type { Log } from '#server/kernel/log'
import type { Dns } from '#server/platform/dns/dns'
import type { RouteRedirect, Route } from '#server/platform/ingress/ingress'
import type { ReservedNames } from './hostname.ts'
import type { Domain } from './schema.ts'
import type { Expected } from './verification.ts'

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
  /** Domains of a project that have enabled rules. */
  ruled(project_id: string): string[]
  /** Throws 422 when these routes would send clients in a circle. */
  requireNoLoop(routes: readonly Route[], domain_id: string): void
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
  clock_trust: ClockTrust
  log: Log
  events: Events
  audit: AuditTrail
  dns: Dns
  ports: DomainPorts
  /** Ports of the edge, for addresses. */
  http_port: number
  https_port: number
}
