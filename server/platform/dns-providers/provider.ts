import type { GenericSchema, InferOutput } from 'valibot'
import type { GuardedClient } from '#server/platform/outbound/client'
import type { OutboundPolicy } from '#server/platform/outbound/outbound'

/** A host of DNS zones that Portreeve may write TXT records at, for ACME's DNS-01. */
export interface DnsProvider {
  /** Proves that the credentials work and that the zone is theirs. Throws DnsProviderError. */
  check(signal?: AbortSignal): Promise<void>
  /**
   * Adds one TXT value beside those that are there; idempotent. `name` is absolute, without a trailing dot.
   */
  addTxt(name: string, value: string, signal?: AbortSignal): Promise<void>
  /** Removes that value only; a missing one is fine. */
  removeTxt(name: string, value: string, signal?: AbortSignal): Promise<void>
}

/** One kind of provider: one file of facts. The dashboard draws its form from `config`. */
export interface DnsProviderDescriptor<Config extends GenericSchema = GenericSchema> {
  name: string
  title: string
  config: Config
  /** Fields of `config` that are sealed at rest and masked in answers. */
  secrets: readonly string[]
  create(config: InferOutput<Config>, ports: { client: GuardedClient; policy: OutboundPolicy }): DnsProvider
}

/** `message` says in one sentence what the provider refused, without a credential. */
export class DnsProviderError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'DnsProviderError'
  }
}
