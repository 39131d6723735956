/**
 * A certificate authority that speaks ACME (RFC 8555). Every request passes the outbound policy. Nothing here
 * waits longer than its bounds, and nothing tries again by itself except a refused nonce: when to try again
 * is the caller's decision.
 */
export interface Acme {
  /**
   * Registers the key as an account and accepts the terms of service; a key that has an account gets that
   * one, with the new e-mail.
   */
  register(account: NewAcmeAccount, signal?: AbortSignal): Promise<{ account_url: string }>
  /** Works with an account that is registered. */
  session(account: AcmeAccount): AcmeSession
  /** A new private key, PKCS #8 in PEM. */
  createKey(type: KeyType): Promise<string>
  /** A certificate signing request for these names, in PEM. */
  createRequest(key: string, names: readonly string[]): Promise<string>
}
export type KeyType = 'ecdsa' | 'rsa'
export interface NewAcmeAccount {
  directory_url: string
  /** Private key in PEM. */
  key: string
  email: string | null
  /** External account binding, which some authorities give to their customers. */
  eab: { kid: string; hmac_key: string } | null
  /** Makes no account for a key that has none, which is then an AcmeError `account`. */
  only_existing?: true
}
export interface AcmeAccount {
  directory_url: string
  key: string
  account_url: string
}

/** Calls on behalf of one account. Each throws AcmeError. */
export interface AcmeSession {
  /** Asks for a certificate of these names. */
  order(names: readonly string[], signal?: AbortSignal): Promise<AcmeOrder>
  /** The order as it is now, with its authorizations. */
  read(order_url: string, signal?: AbortSignal): Promise<AcmeOrder>
  /** Tells the authority that the answer to a challenge can be fetched. */
  accept(challenge: AcmeChallenge, signal?: AbortSignal): Promise<void>
  /**
   * Waits until the authority has decided about the challenges (`ready`) or made the certificate (`valid`).
   * An order that was refused is an AcmeError with the authority's reason.
   */
  settle(order_url: string, desired: 'ready' | 'valid', signal?: AbortSignal): Promise<void>
  /**
   * Hands in the request for the certificate; of an order that is being finalised or was, nothing is asked
   * again.
   */
  finalise(order_url: string, key: string, names: readonly string[], signal?: AbortSignal): Promise<void>
  /** The chain of a valid order, leaf first, in PEM. */
  download(order_url: string, signal?: AbortSignal): Promise<string>
  /** Revokes a certificate that this account obtained. One that is revoked already is fine. */
  revoke(certificate: string, signal?: AbortSignal): Promise<void>
  /** Replaces the account's key; the session goes on with the new one. */
  rollKey(key: string, signal?: AbortSignal): Promise<void>
}

export interface AcmeOrder {
  url: string
  status: 'pending' | 'ready' | 'processing' | 'valid' | 'invalid'
  authorizations: AcmeAuthorization[]
}
export interface AcmeAuthorization {
  /** Without `*.`. */
  hostname: string
  /** Whether it is for the wildcard of the name. */
  wildcard: boolean
  status: 'pending' | 'valid' | 'invalid' | 'deactivated' | 'expired' | 'revoked'
  challenges: AcmeChallenge[]
}
export interface AcmeChallenge {
  type: 'http-01' | 'dns-01'
  url: string
  token: string
  /** What has to be found: the body at the token's path, or the value of the TXT record. */
  answer: string
  status: 'pending' | 'processing' | 'valid' | 'invalid'
}

/**
 * `unreachable`: no usable answer, try later; `rate_limited`: try after `retry_after_s`; `account`: the
 * authority no longer knows or takes the account; `pending`: it did not decide in time; `refused`: it said
 * no, for a reason that somebody has to mend.
 */
export type AcmeErrorCode = 'unreachable' | 'rate_limited' | 'account' | 'pending' | 'refused'

/** `message` is fit for a user: what the authority said, without a key. */
export class AcmeError extends Error {
  readonly code: AcmeErrorCode
  readonly retry_after_s?: number
  constructor(
    code: AcmeErrorCode,
    message: string,
    options: ErrorOptions & { retry_after_s?: number | undefined } = {},
  ) {
    super(message, options)
    this.name = 'AcmeError'
    this.code = code
    if (options.retry_after_s !== undefined) this.retry_after_s = options.retry_after_s
  }
}
