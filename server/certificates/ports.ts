import type { DnsProvider } from '#server/platform/dns-providers/provider'

/** How certificates are obtained, as the settings say. */
export interface AcmeRules {
  directory_url: string
  email: string | null
  eab: { kid: string; hmac_key: string } | null
  key_type: 'ecdsa' | 'rsa'
  challenge: 'http-01' | 'dns-01'
}
/** A domain whose name is proven to be the project's. */
export interface VerifiedDomain {
  id: string
  project_id: string
  hostname: string
  /** Names that are only sent to `hostname`; they need a certificate as well. */
  aliases: readonly string[]
  ssl_mode: 'off' | 'acme' | 'custom' | 'self_signed' | 'external'
  /**
   * The name of the dashboard: its certificate is the installation's, and nobody makes another one for it by
   * hand.
   */
  of_installation?: boolean
}
/** What certificates need of the rest of the installation. */
export interface CertificatePorts {
  rules(): AcmeRules
  /** The provider that TXT records are written at; undefined when none is set up. */
  dnsProvider(): DnsProvider | undefined
  /** TXT values of a name at the configured resolvers; none for a name that has none. */
  txtValues(name: string, signal: AbortSignal): Promise<string[]>
  /** Verified domains: all, or those of one project. */
  domains(project_id?: string): VerifiedDomain[]
  /** Verified domains of a project that have one of these names, or a wildcard above one. */
  domainsAt(project_id: string, names: readonly string[]): VerifiedDomain[]
  domain(id: string): VerifiedDomain | undefined
  /** Whether a domain exists, verified or not. */
  isThere(id: string): boolean
  /** Tells that these domains got a certificate, or lost it. */
  served(domain_ids: readonly string[]): void
}
