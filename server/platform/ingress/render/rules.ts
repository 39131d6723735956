import { createHmac, randomBytes } from 'node:crypto'
import type { BasicAuth, Route } from '../ingress.ts'
import { encodeWord, listName, packWords } from './map-encoding.ts'

/** Makes what a route needs to check a name and a password, without keeping the password. */
export function createBasicAuth(username: string, password: string): BasicAuth {
  const salt = randomBytes(24).toString('base64')
  return {
    salt,
    digest: digestOf(`Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`, salt),
  }
}
function digestOf(header: string, salt: string): string {
  return createHmac('sha256', Buffer.from(salt, 'base64')).update(header).digest('hex').toUpperCase()
}

/** What the edge's configuration asks the rules of a route for: by position, from 1. */
export const RULE_FIELDS = {
  body_limit: 1,
  timeout: 2,
  strip: 3,
  salt: 4,
  digest: 5,
  redirects: 6,
  headers: 7,
  proof: 8,
} as const
/** Which of its rules a route has, each written as `!` and its letter; no other field can have a `!`. */
export const RULE_FLAGS = {
  force_https: '!h',
  maintenance: '!m',
  aliases: '!a',
  allowed: '!i',
  basic_auth: '!b',
  body_limit: '!l',
  timeout: '!t',
  strip: '!s',
  redirects: '!r',
  headers: '!p',
  proof: '!e',
  own_page: '!o',
  asleep: '!z',
} as const

/** Lists of a route, as entries of a map. */
export interface RouteParts {
  redirects: string[]
  headers: string[]
}
export const partsOf = ({ redirects = [], response_headers = {} }: Route): RouteParts => ({
  redirects: packWords(
    redirects.map(({ kind, from, to, status, keep_query }) =>
      [kind, encodeWord(from), encodeWord(to), status, keep_query ? 1 : 0].join('|'),
    ),
  ),
  headers: packWords(Object.entries(response_headers).map(([name, value]) => `${name}|${encodeWord(value)}`)),
})

/** What is taken off the path of a request. */
const strippedOf = (route: Route): string =>
  route.strip_path && route.path !== undefined && route.path !== '/' ? route.path : ''

/** The letters of all rules that a route has. */
function flagsOf(route: Route): string {
  const desired: Record<keyof typeof RULE_FLAGS, unknown> = {
    force_https: route.force_https,
    maintenance: route.maintenance,
    aliases: Object.keys(route.aliases ?? {}).length,
    allowed: route.allowed_addresses,
    basic_auth: route.basic_auth,
    body_limit: route.body_limit_bytes !== undefined,
    timeout: route.request_timeout_ms,
    strip: strippedOf(route),
    redirects: route.redirects?.length,
    headers: Object.keys(route.response_headers ?? {}).length,
    proof: route.proof,
    own_page: route.maintenance && route.error_pages?.['503'] !== undefined,
    asleep: route.asleep,
  }
  return Object.entries(RULE_FLAGS)
    .filter(([name]) => desired[name as keyof typeof RULE_FLAGS])
    .map(([, flag]) => flag)
    .join('')
}

/**
 * The rules of a route as one word, nothing for a route that has none. Setting it is a command that takes
 * less than a millisecond.
 */
export function renderRules(route: Route, { redirects, headers }: RouteParts): string | undefined {
  const flags = flagsOf(route)
  if (flags === '') return undefined
  const fields: Record<keyof typeof RULE_FIELDS, string | number> = {
    body_limit: route.body_limit_bytes ?? '',
    timeout: route.request_timeout_ms ?? '',
    strip: strippedOf(route),
    salt: route.basic_auth?.salt ?? '',
    digest: route.basic_auth?.digest ?? '',
    redirects: redirects.length > 0 ? listName(redirects) : '',
    headers: headers.length > 0 ? listName(headers) : '',
    proof: route.proof ?? '',
  }
  return [...Object.keys(RULE_FIELDS).map((name) => fields[name as keyof typeof RULE_FIELDS]), flags].join(
    '|',
  )
}

/**
 * Behind the word of a route: whether it has rules, or none but that it insists on HTTPS, which most routes
 * have.
 */
export function ruleFlag(route: Route): '' | '|!r' | '|!h' {
  const flags = flagsOf(route)
  if (flags === '') return ''
  return flags === RULE_FLAGS.force_https ? '|!h' : '|!r'
}
