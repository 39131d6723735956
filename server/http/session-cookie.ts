import type { ResponseControls } from './context.ts'

/**
 * Name of the cookie of a session. Over HTTPS its prefix keeps anybody but this very host from setting it: an
 * app below the same domain cannot put a session of its own into somebody's browser.
 */
const nameOf = (secure: boolean): string => (secure ? '__Host-session' : 'session')

/**
 * Without the white space of HTTP in front of it, and no other: browsers let any host of a domain set a cookie whose
 * name begins with a space that only JavaScript takes for one, and the prefix would be found behind it.
 */
const plain = (text: string): string => text.replace(/^[ \t]+/, '')

/** The session that a Cookie header carries; over HTTPS a cookie without the prefix is none. */
export function readSession(cookies: string | undefined, secure: boolean): string | undefined {
  const name = nameOf(secure)
  for (const cookie of (cookies ?? '').split(';')) {
    const at = cookie.indexOf('=')
    if (at > 0 && plain(cookie.slice(0, at)) === name) return cookie.slice(at + 1)
  }
  return undefined
}

/** Whether a browser says that it has a session, under the name of either scheme: a hint for pages, no proof. */
export const carriesSession = (cookies: string | undefined): boolean =>
  [true, false].some((secure) => readSession(cookies, secure) !== undefined)

/** Sets the cookie of a session, or takes it away where `value` is empty. */
export function writeSession(
  response: ResponseControls,
  secure: boolean,
  value: string,
  max_age_s: number,
): void {
  response.cookie(nameOf(secure), value, {
    max_age_s,
    http_only: true,
    secure,
    same_site: 'lax',
    path: '/',
  })
}
