import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'
import { dnsName } from '#server/kernel/dns-names'
import { createNames, type FindAddresses, NameError } from '#server/platform/dns/names'
import { classifyAddress, isInside, isSameAddress, parseAddress } from './addresses.ts'
import { compileAllowList } from './allow-list.ts'
import { OutboundError, type CheckedAddress, type OutboundPolicy } from './outbound.ts'

/** Every address of a name, like the system's own resolver; ends with its signal. */
export type Resolver = FindAddresses

export interface OutboundPolicyOptions {
  /** Items of PORTREEVE_ALLOWED_PRIVATE_HOSTS: `host`, `host:port`, `*.suffix`, an address or a network. */
  allowed_private_hosts: readonly string[]
  /** Default: the names of this machine, /etc/hosts included. */
  resolver?: Resolver
  /**
   * Addresses of this machine with their networks. Default: those of its interfaces at the time of the check.
   */
  interfaces?: () => OwnInterface[]
  /** Time for one DNS answer. Default 10,000. */
  dns_timeout_ms?: number
}
export interface OwnInterface {
  name: string
  address: string
  cidr: string | null
}

const HOSTNAME = dnsName()
/** Names that mean something on private networks only; refused before DNS is asked. */
const PRIVATE_NAME = /(^|\.)(localhost|local|internal|intranet|lan|home\.arpa|localdomain)$/
/** Ports on which this machine answers the public anyway: the edge. Everything else of it is management. */
const EDGE_PORTS = new Set([80, 443])
const CONTAINER_BRIDGE = /^(docker|br-|podman|cni)/
/** Whether an interface of this machine leads to its containers alone. */
export const isContainerBridge = (name: string): boolean => CONTAINER_BRIDGE.test(name)

const systemInterfaces = (): OwnInterface[] =>
  Object.entries(networkInterfaces()).flatMap(([name, addresses]) =>
    (addresses ?? []).map(({ address, cidr }) => ({ name, address, cidr })),
  )

const forbidden = (host: string) =>
  new OutboundError(
    'forbidden',
    `${host} is or leads to an address that is not public; the operator of this server can allow it with PORTREEVE_ALLOWED_PRIVATE_HOSTS.`,
  )

/** The host as URLs write it, without brackets and the root's dot. */
export const bareHost = (host: string): string =>
  host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')

/** Ends a DNS question that takes too long or is no longer wanted, so that nothing of it is left behind. */
function bounded<T>(
  work: (signal: AbortSignal) => Promise<T>,
  timeout_ms: number,
  signal: AbortSignal | undefined,
  onTimeout: () => Error,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const ending = new AbortController()
    const end = (error: Error): void => {
      reject(error)
      ending.abort()
    }
    const onAbort = (): void => end(new OutboundError('aborted', 'The request was cancelled.'))
    if (signal?.aborted) return onAbort()
    const timer = setTimeout(() => end(onTimeout()), timeout_ms)
    signal?.addEventListener('abort', onAbort, { once: true })
    work(ending.signal)
      .then(resolve, reject)
      .finally(() => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
      })
  })
}

/**
 * The rule of where this server may connect to for its users. Pure apart from DNS and the list of own
 * addresses.
 */
export function createOutboundPolicy(options: OutboundPolicyOptions): OutboundPolicy {
  const allowed = compileAllowList(options.allowed_private_hosts)
  const resolver = options.resolver ?? createNames()
  const interfaces = options.interfaces ?? systemInterfaces

  /** A public address may still be this machine (its management ports) or one of its containers. */
  const isOwn = (address: string, port: number): boolean =>
    interfaces().some(
      (own) =>
        (isSameAddress(own.address, address) && !EDGE_PORTS.has(port)) ||
        (CONTAINER_BRIDGE.test(own.name) &&
          own.cidr !== null &&
          isInside(address, ipaddr.parseCIDR(own.cidr))),
    )

  function mayConnect(address: string, port: number, listed: boolean): boolean {
    if (allowed.hasAddress(address, port)) return true
    const kind = classifyAddress(address)
    if (kind === 'unusual') return false
    return listed || (kind === 'public' && !isOwn(address, port))
  }

  function checkHost(text: string, port: number): void {
    const host = bareHost(text)
    if (!Number.isInteger(port) || port < 1 || port > 65535)
      throw new OutboundError('invalid', 'The port must be a number from 1 to 65535.')
    if (parseAddress(host)) {
      if (!mayConnect(host, port, false)) throw forbidden(host)
      return
    }
    // Such as 2130706433, 0x7f.1 or 127.1: the system would read them as addresses.
    if (/(^|\.)(\d+|0x[0-9a-f]*)$/.test(host))
      throw new OutboundError(
        'invalid',
        'Write the address of the host in its usual form, such as 203.0.113.7.',
      )
    if (!HOSTNAME.test(host)) throw new OutboundError('invalid', 'The name of the host is not valid.')
    if ((!host.includes('.') || PRIVATE_NAME.test(host)) && !allowed.hasName(host, port))
      throw forbidden(host)
  }

  const isListed = (text: string, port: number): boolean => {
    const host = bareHost(text)
    return parseAddress(host) ? allowed.hasAddress(host, port) : allowed.hasName(host, port)
  }

  return {
    checkHost,
    isListed,
    checkUrl(text, { protocols } = {}) {
      const url = text.length <= 2048 && URL.canParse(text) ? new URL(text) : undefined
      if (!url?.hostname)
        throw new OutboundError('invalid', 'The address is not a valid URL of at most 2048 characters.')
      const port = Number(url.port || (url.protocol === 'http:' ? 80 : 443))
      if (!(protocols ?? ['https:', 'http:']).includes(url.protocol))
        throw new OutboundError('invalid', 'The address must start with https://.')
      if (url.username || url.password)
        throw new OutboundError('invalid', 'The address must not hold a user name or password.')
      checkHost(url.hostname, port)
      if (!protocols && url.protocol === 'http:' && !isListed(url.hostname, port))
        throw new OutboundError('invalid', 'The address must start with https://.')
      return url
    },
    async resolve(text, port, signal): Promise<CheckedAddress[]> {
      const host = bareHost(text)
      checkHost(host, port)
      const literal = parseAddress(host)
      if (literal) return [{ address: host, family: literal.kind() === 'ipv4' ? 4 : 6 }]
      const late = () => new OutboundError('timeout', `DNS did not answer for ${host} in time.`)
      const found = await bounded(
        (until) => resolver(host, until),
        options.dns_timeout_ms ?? 10_000,
        signal,
        late,
      ).catch((error: unknown) => {
        if (error instanceof OutboundError) throw error
        if (error instanceof NameError && error.code === 'timeout') throw late()
        throw new OutboundError('unknown_host', `The name ${host} is not known to DNS.`, {
          cause: error,
        })
      })
      if (found.length === 0) throw new OutboundError('unknown_host', `The name ${host} is not known to DNS.`)
      const listed = allowed.hasName(host, port)
      for (const { address } of found) if (!mayConnect(address, port, listed)) throw forbidden(host)
      return found.map(({ address }) => ({ address, family: address.includes(':') ? 6 : 4 }))
    },
  }
}
