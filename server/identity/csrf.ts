import { createHmac, timingSafeEqual } from 'node:crypto'
import { ApiError } from '#server/kernel/errors'

/** What a browser tells about where a request comes from. */
export interface RequestOrigin {
  origin?: string
  fetch_site?: string
  host?: string
}

export interface Csrf {
  /** The token of one session; the same for as long as the session lives. */
  tokenOf(session_id: string): string
  /**
   * Throws CSRF_INVALID unless the token belongs to the session and no browser says that another site asks.
   */
  check(session_id: string, token: string | undefined, from: RequestOrigin): void
  /** Whether a browser says that the request comes from this installation itself. */
  isSameOrigin(from: RequestOrigin): boolean
}

/**
 * Tokens that are remembered: an HMAC costs as much as all the reads of a request together. Each takes about
 * 200 bytes.
 */
const REMEMBERED = 5_000

const refused = (message: string) => new ApiError('CSRF_INVALID', message)

/**
 * Protection of cookie sessions against requests that another site makes a browser send. Pages come from the
 * public address, or from whatever name or address the browser used for this request: a wrong public address
 * locks nobody out.
 */
export function createCsrf(key: Buffer, public_url: () => string | undefined): Csrf {
  const remembered = new Map<string, string>()
  const tokenOf = (session_id: string): string => {
    const known = remembered.get(session_id)
    if (known !== undefined) return known
    const token = createHmac('sha256', key).update(session_id).digest('base64url')
    if (remembered.size >= REMEMBERED) remembered.delete(remembered.keys().next().value!)
    remembered.set(session_id, token)
    return token
  }
  const isOwn = (origin: string, host: string | undefined) => {
    // What nearly every browser sends, recognised without taking addresses apart.
    if (host !== undefined && (origin === `https://${host}` || origin === `http://${host}`)) return true
    const own = public_url()
    if (own !== undefined && origin === new URL(own).origin) return true
    return URL.canParse(origin) && host !== undefined && new URL(origin).host === host.toLowerCase()
  }
  return {
    tokenOf,
    isSameOrigin: ({ origin, host }) => origin !== undefined && isOwn(origin, host),
    check(session_id, token, { origin, fetch_site, host }) {
      const expected = Buffer.from(tokenOf(session_id))
      const given = Buffer.from(token ?? '')
      if (given.length !== expected.length || !timingSafeEqual(given, expected))
        throw refused('Send the token of GET /api/auth/csrf-token of this session as X-CSRF-Token.')
      // Programs outside a browser send neither header; every browser sends Origin with a request that
      // changes something.
      if (origin !== undefined && !isOwn(origin, host)) throw refused('This request comes from another site.')
      if (fetch_site !== undefined && !['same-origin', 'none'].includes(fetch_site))
        throw refused('This request comes from another site.')
    },
  }
}
