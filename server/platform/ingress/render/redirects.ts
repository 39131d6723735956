import type { RouteRedirect } from '../ingress.ts'
import { encodeWord } from './map-encoding.ts'

/** Where a request is sent, and by which rule. */
export interface RedirectMatch {
  redirect: RouteRedirect
  location: string
}

/**
 * Says what the edge answers by these rules: the first that matches wins.
 * @param path The path of the request as it was sent, without the query.
 * @param query What stands behind the `?`, if anything.
 */
export function matchRedirect(
  redirects: readonly RouteRedirect[],
  path: string,
  query?: string,
): RedirectMatch | undefined {
  for (const redirect of redirects) {
    const groups = groupsOf(redirect, path)
    if (groups) return { redirect, location: locate(redirect, groups, query) }
  }
  return undefined
}

/** What `$1` to `$9` stand for, behind the whole path. A prefix ends where a segment ends. */
function groupsOf({ kind, from }: RouteRedirect, path: string): (string | undefined)[] | undefined {
  if (kind === 'exact') return path === from ? [path] : undefined
  if (kind === 'regex') return new RegExp(`^(?:${from})$`, 's').exec(path) ?? undefined
  const rest = path.slice(from.length)
  return path.startsWith(from) && (from.endsWith('/') || /^\/|^$/.test(rest)) ? [path, rest] : undefined
}

/**
 * What a client sent never becomes part of the target's host: behind a bare host it starts the path, and a
 * path begins with one slash.
 */
function locate({ to, keep_query }: RouteRedirect, groups: (string | undefined)[], query?: string): string {
  let location = to.replace(/\$([1-9])/g, (_text, number: string, at: number) => {
    const value = groups[Number(number)] ?? ''
    return BARE_HOST.test(to.slice(0, at)) && !/^[/?#]|^$/.test(value) ? `/${value}` : value
  })
  if (!ADDRESS.test(to)) location = location.replace(/^[/\\]*/, '/')
  if (!keep_query || !query) return location
  const [target = '', fragment] = location.split(/#(.*)/s)
  return `${target}${target.includes('?') ? '&' : '?'}${query}${fragment === undefined ? '' : `#${fragment}`}`
}

const ADDRESS = /^https?:\/\//i
const BARE_HOST = /^https?:\/\/[^/?#]+$/i

/** More would not fit into one command of the edge. */
const MAX_PART = 10_000

/** Says why the edge cannot take a redirect; nothing when it can. */
export function redirectComplaint({ kind, from, to, status }: RouteRedirect): string | undefined {
  if (!['exact', 'prefix', 'regex'].includes(kind) || ![301, 302, 307, 308].includes(status))
    return 'a redirect has a kind or a status that the edge does not know.'
  if (kind !== 'regex' && !from.startsWith('/')) return 'the path of a redirect does not start with a slash.'
  if (from === '' || !/^[!-~]*$/.test(from + to))
    return 'a redirect has characters that an address cannot have.'
  if (!/^(\/(?![/\\])|\$[1-9]|https?:\/\/[^/?#$\\@]+(\$[1-9])?([/?#]|$))/i.test(to))
    return 'the target of a redirect is neither a path nor an address with a fixed host.'
  if (encodeWord(from + to).length > MAX_PART) return 'a redirect is too long.'
  if (kind === 'regex' && !isPattern(from))
    return 'the pattern of a redirect is no regular expression that the edge takes.'
  return undefined
}

/** Back-references and groups with a name or an option would not mean here what they mean in the edge. */
const UNKNOWN = /\\[1-9kKGgXRCEQ]|\(\?(?!:|=|!)|\(\*/

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, 's').flags !== '' && !UNKNOWN.test(text)
  } catch {
    return false
  }
}
