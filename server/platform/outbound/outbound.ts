import type { Socket } from 'node:net'

/**
 * Where this server may connect to on behalf of its users: public addresses, and what the operator listed in
 * PORTREEVE_ALLOWED_PRIVATE_HOSTS. Every outbound request that a user can aim goes through here.
 */
export interface OutboundPolicy {
  /**
   * Checks an address as far as it can be without DNS: the scheme (`https`, and `http` for listed hosts,
   * unless `protocols` says otherwise), no credential, no forbidden host. Returns it parsed; throws
   * OutboundError.
   */
  checkUrl(url: string, options?: { protocols?: readonly string[] }): URL
  /**
   * Checks a host name or address literal without DNS, so that a form can be refused at once. Throws
   * OutboundError.
   */
  checkHost(host: string, port: number): void
  /** True when the operator listed this very host (not merely an address that it resolves to). */
  isListed(host: string, port: number): boolean
  /** Resolves once and checks every address; one forbidden address refuses the name. Throws OutboundError. */
  resolve(host: string, port: number, signal?: AbortSignal): Promise<CheckedAddress[]>
}

/**
 * An address that passed the policy. Connect to it, never to the name again: the name may resolve differently
 * a moment later.
 */
export interface CheckedAddress {
  address: string
  family: 4 | 6
}

/** Opens a TCP connection to a checked address of `host`; `timeout_ms` is for its name and the connection together. */
export type Dial = (
  host: string,
  port: number,
  options?: { timeout_ms?: number; signal?: AbortSignal },
) => Promise<Socket>

export type OutboundErrorCode =
  | 'invalid'
  | 'forbidden'
  | 'unknown_host'
  | 'refused'
  | 'unreachable'
  | 'timeout'
  | 'tls'
  | 'too_large'
  | 'redirect'
  | 'aborted'
  | 'failed'

/** `message` says in one sentence what happened, without the address's path or a credential. */
export class OutboundError extends Error {
  readonly code: OutboundErrorCode
  constructor(code: OutboundErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'OutboundError'
    this.code = code
  }
}
