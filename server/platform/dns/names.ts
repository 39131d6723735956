import { isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { Dns, DnsAnswer } from './dns.ts'
import { createHostsFile } from './hosts-file.ts'
import { createDnsResolver } from './resolver.ts'
import { readResolverFile } from './resolver-file.ts'
import { shareLookups } from './shared-lookups.ts'

export interface FoundAddress {
  address: string
  family: number
}
/**
 * Every address of a name, as programs of this machine find it. Throws NameError, or the reason of `signal` once
 * that is aborted.
 */
export type FindAddresses = (name: string, signal?: AbortSignal) => Promise<FoundAddress[]>

export class NameError extends Error {
  /** `missing`: there is no such name. `failed`: DNS cannot tell. `timeout`: nobody answered. */
  readonly code: 'missing' | 'failed' | 'timeout'
  constructor(code: NameError['code'], name: string) {
    super(`No address of ${name} was found: ${code}.`)
    this.name = 'NameError'
    this.code = code
  }
}

export interface NamesOptions {
  /** Name servers by address, maybe with a port, in the order that they are asked. Default: the system's. */
  servers?: readonly string[]
  hosts_path?: string
  resolver_path?: string
  /** Wait for one answer, and how often each server is asked. Defaults 2000 and 2. */
  timeout_ms?: number
  tries?: number
  /** How long the addresses of one family wait for those of the other. Default 1000. */
  other_family_ms?: number
  /** Look-ups under way at once. Default 128. */
  most_at_once?: number
}

/** A silent server before one that answers costs two of the five seconds that a connection may take. */
const TIMEOUT_MS = 2000
const TRIES = 2
/** Some name servers never answer for IPv6; their names are reached over IPv4 all the same. */
const OTHER_FAMILY_MS = 1000
/** Each holds two sockets. What serves needs the files of this process more. */
const MOST_AT_ONCE = 128
const PUBLIC_IPV6 = /^[23][0-9a-f]{3}:/

/** Where the system connects to first: IPv6, provided that this machine has a public address of it. */
function inOrder(addresses: readonly string[]): FoundAddress[] {
  const own = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  const first = own.some(({ address }) => PUBLIC_IPV6.test(address)) ? 6 : 4
  const found = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }))
  return [
    ...found.filter(({ family }) => family === first),
    ...found.filter(({ family }) => family !== first),
  ]
}

/** Asks for the addresses of both families; those of one are enough when the other does not come. */
async function askBoth(
  ask: (type: 'A' | 'AAAA', signal: AbortSignal) => Promise<DnsAnswer>,
  signal: AbortSignal,
  other_family_ms: number,
): Promise<DnsAnswer> {
  const late = new AbortController()
  const asked = new AbortController()
  const ending = AbortSignal.any([signal, late.signal])
  const answers = await Promise.all(
    (['A', 'AAAA'] as const).map(async (type) => {
      const answer = await ask(type, ending)
      if (answer.outcome === 'found')
        void delay(other_family_ms, undefined, { signal: asked.signal }).then(
          () => late.abort(),
          () => {},
        )
      return answer
    }),
  )
  asked.abort()
  const values = answers.flatMap((answer) => (answer.outcome === 'found' ? answer.values : []))
  if (values.length > 0) return { outcome: 'found', values }
  return answers.find(({ outcome }) => outcome === 'failed') ?? { outcome: 'missing' }
}

/** Other servers may know what one cannot or will not tell; a silent one has been passed over already. */
const isForAnother = (answer: DnsAnswer): boolean =>
  answer.outcome === 'failed' && answer.reason !== 'timeout' && answer.reason !== 'unreachable'

/**
 * Finds names as getaddrinfo of glibc does (the hosts file, then DNS with the search domains of resolv.conf), but
 * never on the threads of this process: getaddrinfo cannot be cancelled, and two names whose server is silent hold
 * all the threads that it may use, whoever asks. Both files are looked at for each name. Other sources of
 * nsswitch.conf, such as mDNS, are not asked.
 */
export function createNames(options: NamesOptions = {}): FindAddresses {
  const hosts = createHostsFile(options.hosts_path ?? '/etc/hosts')
  const dns: Dns = createDnsResolver({
    timeout_ms: options.timeout_ms ?? TIMEOUT_MS,
    tries: options.tries ?? TRIES,
  })
  const other_family_ms = options.other_family_ms ?? OTHER_FAMILY_MS

  async function askServers(
    name: string,
    servers: readonly (string | undefined)[],
    signal: AbortSignal,
  ): Promise<DnsAnswer> {
    const [server, ...others] = servers
    const answer = await askBoth((type, until) => dns.ask(name, type, server, until), signal, other_family_ms)
    return others.length > 0 && isForAnother(answer) ? askServers(name, others, signal) : answer
  }

  async function askDns(name: string, signal: AbortSignal): Promise<string[]> {
    const file = await readResolverFile(options.resolver_path ?? '/etc/resolv.conf')
    // The first choice is left to c-ares, which goes on to the next server where one is silent.
    const servers = options.servers ?? [undefined, ...file.servers.slice(1)]
    const searched = file.search.map((domain) => `${name}.${domain}`)
    const is_complete = name.split('.').length > file.ndots
    let has_failed = false
    for (const candidate of is_complete ? [name, ...searched] : [...searched, name]) {
      const answer = await askServers(candidate, servers, signal)
      if (answer.outcome === 'found') return answer.values
      if (answer.outcome !== 'failed') continue
      if (!isForAnother(answer)) throw new NameError('timeout', name)
      has_failed = true
    }
    throw new NameError(has_failed ? 'failed' : 'missing', name)
  }

  async function look(name: string, signal: AbortSignal): Promise<FoundAddress[]> {
    const written = await hosts.find(name)
    if (written) return inOrder(written)
    // RFC 6761: no name server is asked for these.
    if (/(^|\.)localhost$/.test(name)) return inOrder(['127.0.0.1', '::1'])
    return inOrder(await askDns(name, signal))
  }
  return shareLookups(look, options.most_at_once ?? MOST_AT_ONCE)
}
