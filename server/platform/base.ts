import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { ClockTrust } from '#server/kernel/clock-trust'
import type { Config } from '#server/kernel/config'
import type { Db } from '#server/kernel/db'
import type { Directories } from '#server/kernel/directories'
import type { Events } from '#server/kernel/events'
import type { Jobs } from '#server/kernel/jobs/jobs'
import type { Log } from '#server/kernel/log'
import type { Declared } from '#server/kernel/module'
import type { Secrets } from '#server/kernel/secrets'
import type { Acme } from './acme/acme.ts'
import type { Cluster } from './cluster/cluster.ts'
import type { Dns } from './dns/dns.ts'
import type { FindAddresses } from './dns/names.ts'
import type { DnsProviderDescriptor } from './dns-providers/provider.ts'
import type { Door } from './door.ts'
import type { Engine } from './engine/engine.ts'
import type { Git } from './git/git.ts'
import type { HostGuard } from './host-rules/host-guard.ts'
import type { Ingress } from './ingress/ingress.ts'
import type { Mail } from './mail/mail.ts'
import type { GuardedClient } from './outbound/client.ts'
import type { OutboundPolicy } from './outbound/outbound.ts'

/** What is there before anything of the product: settings of the process, its database and its key. */
export interface Kernel {
  config: Config
  db: Db
  clock: Clock
  log: Log
  secrets: Secrets
}

/** The outside world; real ones are chosen at the start, fake ones in tests. */
export interface Adapters {
  engine: Engine
  git: Git
  ingress: Ingress
  dns: Dns
  /** Finds the addresses of names that users gave. Default: as programs of this machine find them. */
  names?: FindAddresses
  acme: Acme
  /** Servers beside this one; without it none can be added. */
  cluster?: Cluster
  /** Rules of this machine's firewall; none in most tests. */
  guard?: HostGuard
  /** Where this process takes connections; none in most tests. */
  door?: Door
  /** Stands in for the mail server of the settings. */
  mail?: Mail
  /** Default: those that exist. */
  dns_providers?: readonly DnsProviderDescriptor[]
  /** Cost of password hashes, as the KDF takes it; tests of other things lower it. Default: the product's. */
  password_cost?: { logN: number; r: number; p: number }
}

/** What every module gets: the kernel, the outside world, and what all of them write to. */
export interface Base extends Kernel, Adapters {
  dns_providers: readonly DnsProviderDescriptor[]
  events: Events
  jobs: Jobs
  audit: AuditTrail
  /** Asked before anything is deleted by its age. */
  clock_trust: ClockTrust
  /** Hosts that this server may connect to on behalf of users. */
  policy: OutboundPolicy
  /** Reaches them, and nothing else. */
  client: GuardedClient
  /** Authorities besides the built-in ones, in PEM, as the settings of the process name them. */
  authorities: readonly string[] | undefined
  directories: Directories
  /** Version of the product. */
  version: string
  /** What all modules declare together, e.g. every kind of resource. */
  modules: Declared
}
