import { cloudflare } from './cloudflare.ts'
import type { DnsProviderDescriptor } from './provider.ts'
import { rfc2136 } from './rfc2136.ts'

/** Every kind of DNS provider, in the order in which a form offers them. */
export const DNS_PROVIDERS: readonly DnsProviderDescriptor[] = [cloudflare, rfc2136]

/** The descriptor of this name; undefined for a name that this version does not know. */
export const findDnsProvider = (name: string): DnsProviderDescriptor | undefined =>
  DNS_PROVIDERS.find((provider) => provider.name === name)
