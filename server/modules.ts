import addresses from '#server/addresses/module'
import apps from '#server/apps/module'
import audit from '#server/audit/module'
import backups from '#server/backups/module'
import builds from '#server/builds/module'
import certificates from '#server/certificates/module'
import disk from '#server/disk/module'
import databases from '#server/databases/module'
import cron from '#server/cron/module'
import deployments from '#server/deployments/module'
import domains from '#server/domains/module'
import env from '#server/env/module'
import gitCredentials from '#server/git-credentials/module'
import http from '#server/http/module'
import identity from '#server/identity/module'
import ingress from '#server/ingress/module'
import { compose, poolsOf, sealedOf, type ServicesOf } from '#server/kernel/compose'
import type { AuditTrail } from '#server/kernel/audit'
import { createClockTrust } from '#server/kernel/clock-trust'
import { directories } from '#server/kernel/directories'
import { createEvents } from '#server/kernel/events'
import { createJobs } from '#server/kernel/jobs/jobs'
import type { AnyModule } from '#server/kernel/module'
import type { Adapters, Base, Kernel } from '#server/platform/base'
import { DNS_PROVIDERS } from '#server/platform/dns-providers/providers'
import { authoritiesOf } from '#server/platform/outbound/authorities'
import { createGuardedClient } from '#server/platform/outbound/client'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import monitoring from '#server/monitoring/module'
import nodes from '#server/nodes/module'
import previews from '#server/previews/module'
import projects from '#server/projects/module'
import realtime from '#server/realtime/module'
import redirects from '#server/redirects/module'
import registries from '#server/registries/module'
import rotation from '#server/rotation/module'
import runtimeLogs from '#server/runtime-logs/module'
import scaling from '#server/scaling/module'
import search from '#server/search/module'
import stackServices from '#server/services/module'
import settings from '#server/settings/module'
import sshKeys from '#server/ssh-keys/module'
import storageProviders from '#server/storage-providers/module'
import system from '#server/system/module'
import terminals from '#server/terminals/module'
import templates from '#server/templates/module'
import traffic from '#server/traffic/module'
import volumes from '#server/volumes/module'
import webhooks from '#server/webhooks/module'

/**
 * Every domain, in the order in which they are made and started; they stop in the opposite one. Overviews
 * list their resources in this order, too.
 */
export const MODULES = [
  audit,
  settings,
  addresses,
  projects,
  identity,
  apps,
  domains,
  redirects,
  certificates,
  sshKeys,
  gitCredentials,
  registries,
  storageProviders,
  env,
  builds,
  volumes,
  stackServices,
  deployments,
  databases,
  cron,
  backups,
  runtimeLogs,
  terminals,
  templates,
  traffic,
  previews,
  webhooks,
  monitoring,
  scaling,
  search,
  rotation,
  disk,
  nodes,
  system,
  ingress,
  http,
  realtime,
] as const

/** Every sealed column of the database. */
export const SEALED_COLUMNS = sealedOf(MODULES)

/** The composed product: what routes, the WebSocket and tasks call. */
export type Services = ServicesOf<typeof MODULES> &
  Pick<Base, 'events' | 'jobs'> & {
    kernel: Kernel
    /** Runs what is due of a task; see `tasks/`. */
    wake(task: string): Promise<Record<string, unknown>>
    /** Forgets what is past its time; returns how much, by what it is. */
    cleanup(): Promise<Record<string, number>>
    /** Starts what works in the background. */
    start(): Promise<void>
    stop(): Promise<void>
  }

/**
 * Where Portreeve kills itself when an experiment asks for it, so that recovery from every step can be
 * proven.
 */
function faultOf(crash_at: string | undefined) {
  if (!crash_at) return undefined
  return (point: string, when: 'before' | 'after') => {
    if (`${point}:${when}` === crash_at) process.kill(process.pid, 'SIGKILL')
  }
}

/** What every module gets, apart from what they declare together. */
function createBase(
  kernel: Kernel,
  adapters: Adapters,
  version: string,
  modules: readonly AnyModule[],
): Omit<Base, 'modules' | 'audit'> {
  const { config, db, clock, log } = kernel
  const policy = createOutboundPolicy({
    allowed_private_hosts: config.allowed_private_hosts,
    ...(adapters.names ? { resolver: adapters.names } : {}),
  })
  const authorities = authoritiesOf(config.ca_file)
  return {
    ...kernel,
    ...adapters,
    dns_providers: adapters.dns_providers ?? DNS_PROVIDERS,
    events: createEvents(db, clock, log),
    clock_trust: createClockTrust(kernel),
    jobs: createJobs({ db, clock, log, pools: poolsOf(modules), fault: faultOf(config.crash_at) }),
    policy,
    authorities,
    client: createGuardedClient(policy, authorities ? { ca: authorities } : {}),
    directories: directories(config.data_directory),
    version,
  }
}

/**
 * Composes the product from a kernel and the outside world. The one place where domains meet.
 * @param modules the list, or a longer one in tests.
 */
export function createServices(
  kernel: Kernel,
  adapters: Adapters,
  version = '0.0.0',
  modules: typeof MODULES = MODULES,
): Services {
  const base = createBase(kernel, adapters, version, modules)
  const { services, ...rest } = compose(modules, {
    ...base,
    audit: { record: (...line: Parameters<AuditTrail['record']>) => services.audit.record(...line) },
  })
  return { ...services, ...rest, kernel, events: base.events, jobs: base.jobs }
}
