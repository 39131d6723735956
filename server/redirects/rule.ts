import { invalid } from '#server/kernel/errors'
import { redirectComplaint } from '#server/platform/ingress/render/redirects'
import type { RouteRedirect } from '#server/platform/ingress/ingress'
import { PatternError, readCheapPattern } from './pattern.ts'

/** A rule as the edge takes it, with where it stands. */
export type Rule = Omit<RouteRedirect, 'id'>

/**
 * The target as the edge takes it. What stands behind a prefix begins with its own slash, so the one directly
 * before `$1` goes:
 * `/p` to `/q/$1` sends `/p/a` to `/q/a` and `/p` to `/q`.
 */
export const targetOf = ({ kind, from, to }: Pick<Rule, 'kind' | 'from' | 'to'>): string =>
  kind === 'prefix' && !from.endsWith('/') ? to.replace(/(?<!\/)\/\$1(?=[/?#]|$)/g, '$$1') : to

const encoded = (text: string) =>
  text.replace(/[^\u0000-\u001f!-~\u007f]/gu, (character) =>
    [...Buffer.from(character)]
      .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
      .join(''),
  )
/** A path as browsers ask for it: international characters and spaces are encoded. */
export const pathAsAsked = (kind: Rule['kind'], from: string): string =>
  kind === 'regex' ? from : encoded(from)
/** A target as a header can carry it, with an international host name in ASCII. */
export function targetAsSent(to: string): string {
  const [, origin = '', rest = to] = /^(https?:\/\/[^/?#$]+)([^]*)$/i.exec(to) ?? []
  const is_international = /[^\u0000-\u007f]/.test(origin) && URL.canParse(origin)
  return `${is_international ? new URL(origin).origin : origin}${encoded(rest)}`
}

/** Groups that `from` captures. */
function groupsOf({ kind, from }: Rule): number {
  if (kind !== 'regex') return kind === 'prefix' ? 1 : 0
  try {
    return readCheapPattern(from).groups
  } catch (error) {
    if (error instanceof PatternError) throw invalid('from', error.message)
    throw error
  }
}

/** Throws 422 for a rule that the edge would not take or that could not do what it says. */
export function checkRule(rule: Rule, domain_path: string): void {
  const { kind, from, to } = rule
  const groups = groupsOf(rule)
  if (kind !== 'regex' && !/^\/[!-~]*$/.test(from))
    throw invalid('from', 'must be a path that starts with a slash, without control characters.')
  if (kind !== 'regex' && /[?#]/.test(from))
    throw invalid('from', 'must be a path alone; a query is never compared.')
  if (kind !== 'regex' && domain_path !== '/' && from !== domain_path && !from.startsWith(`${domain_path}/`))
    throw invalid('from', 'is not below the path of the domain, so no request would ever reach the rule.')
  if (!/^(\/|\$[1-9]|https?:\/\/)/i.test(to))
    throw invalid('to', 'must be a path or an http or https address.')
  if (/^\/[/\\]/.test(to))
    throw invalid('to', 'begins with two slashes, which browsers read as the address of another server.')
  const missing = [...to.matchAll(/\$([1-9])/g)].find(([, number]) => Number(number) > groups)
  if (missing)
    throw invalid(
      'to',
      groups === 0
        ? 'names a group, but from has none.'
        : `names a group that from does not have; it has ${groups}.`,
    )
  const complaint = redirectComplaint({ ...rule, id: 'rdr_new' })
  if (complaint !== undefined) throw invalid('to', complaint)
}
