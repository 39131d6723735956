export { checkCommit, checkRef } from './refs.ts'
import { OutboundError, type OutboundPolicy } from '#server/platform/outbound/outbound'
import { GitError } from './git.ts'

/** A repository address that passed every rule; `url` is what git gets, after `--`. */
export interface GitUrl {
  protocol: 'https' | 'http' | 'ssh'
  /** Name or address, lower case, without brackets. */
  host: string
  port: number
  /** Login of an ssh address. */
  user?: string
  /**
   * Path as the server knows it; without a leading slash when an scp-like address is relative to the login's
   * home.
   */
  path: string
  /** The address in one canonical spelling, without any credential. */
  url: string
}

const EXAMPLES =
  'Write it like https://github.com/owner/repository.git or git@github.com:owner/repository.git.'
const bad = (message: string, hint = EXAMPLES): GitError => new GitError('invalid_url', message, hint)

const MAX_LENGTH = 2048
const DEFAULT_PORT = { https: 443, http: 80, ssh: 22 } as const
const USER = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/
const HOST = /^(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])$/
/**
 * What paths of forges are made of; whatever means something to a shell, a terminal or a URL parser is left
 * out.
 */
const SEGMENT = /^[A-Za-z0-9_.~+@=,-]+$/
/**
 * Over http, a space and letters outside of ASCII may be percent-encoded, as project names of some forges
 * need.
 */
const ENCODED_SEGMENT = /^(?:[A-Za-z0-9_.~+@=,-]|%20|%[89A-Fa-f][0-9A-Fa-f])+$/

function checkPath(path: string, encoded: boolean): void {
  const segments = path.replace(/^\//, '').replace(/\/$/, '').split('/')
  for (const segment of segments) {
    if (segment === '') throw bad('The address of the repository has no path, or an empty part in it.')
    if (segment === '.' || segment === '..')
      throw bad('The path of the repository must not contain "." or ".." as a part.')
    if (segment.startsWith('-')) throw bad('No part of the address may start with "-".')
    if (!(encoded ? ENCODED_SEGMENT : SEGMENT).test(segment)) {
      throw bad(
        'The path of the repository holds characters that are not allowed.',
        `Letters, digits and . _ ~ + @ = , - are. ${EXAMPLES}`,
      )
    }
  }
}

function checkHost(raw: string, port: number, policy: OutboundPolicy): string {
  if (raw.startsWith('-')) throw bad('No part of the address may start with "-".')
  if (!HOST.test(raw))
    throw bad(
      'The host of the repository is not a valid name.',
      `Write international names in their ASCII form (xn--…). ${EXAMPLES}`,
    )
  const host = raw.toLowerCase().replace(/^\[(.*)\]$/, '$1')
  try {
    policy.checkHost(host, port)
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error
    if (error.code !== 'forbidden') throw bad(error.message)
    throw new GitError(
      'forbidden_host',
      'The host of the repository is not on the public internet.',
      'Use a public address, or ask the operator of this server to list the host in PORTREEVE_ALLOWED_PRIVATE_HOSTS.',
      { cause: error },
    )
  }
  return host
}

function readPort(text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port < 1 || port > 65535)
    throw bad('The port of the address must be a number from 1 to 65535.')
  return port
}

function checkUser(user: string): string {
  if (user.includes(':'))
    throw bad(
      'The address must not hold a password.',
      'Store a deploy key for the project with POST /api/ssh-keys instead.',
    )
  if (user.startsWith('-')) throw bad('No part of the address may start with "-".')
  if (!USER.test(user)) throw bad('The user of the address is not valid.')
  return user
}

/**
 * Our own reading must agree with the URL standard's, which git's HTTP library follows: two readings of one
 * address are how hosts get confused.
 */
function agreesWithStandard(url: string, host: string, port: number): boolean {
  if (!URL.canParse(url)) return false
  const standard = new URL(url)
  return (
    standard.hostname.replace(/^\[(.*)\]$/, '$1') ===
      new URL(`https://${host.includes(':') ? `[${host}]` : host}`).hostname.replace(/^\[(.*)\]$/, '$1') &&
    Number(standard.port || DEFAULT_PORT[standard.protocol.slice(0, -1) as 'https']) === port
  )
}

function parseWithScheme(scheme: string, rest: string, policy: OutboundPolicy): GitUrl {
  const protocol = scheme.toLowerCase()
  if (protocol !== 'https' && protocol !== 'http' && protocol !== 'ssh') {
    throw bad(
      'Only https and ssh addresses of repositories can be used.',
      protocol === 'git' ? 'Replace git:// with https://.' : EXAMPLES,
    )
  }
  const [, authority = '', path = ''] = /^([^/]*)(\/.*)?$/s.exec(rest) ?? []
  const at = authority.lastIndexOf('@')
  const userinfo = at < 0 ? undefined : authority.slice(0, at)
  const [, raw_host = '', raw_port] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/s.exec(authority.slice(at + 1)) ?? []
  if (userinfo !== undefined && protocol !== 'ssh') {
    throw bad(
      'The address must not hold a user name, password or token.',
      'Remove everything before the @, and store the token for the project with POST /api/git-credentials.',
    )
  }
  const user = protocol === 'ssh' ? checkUser(userinfo ?? 'git') : undefined
  const port = readPort(raw_port, DEFAULT_PORT[protocol])
  const host = checkHost(raw_host, port, policy)
  checkPath(path, protocol !== 'ssh')
  if (protocol === 'http' && !policy.isListed(host, port)) {
    throw bad(
      'The address must start with https://.',
      'http is unprotected; the operator of this server can allow it for hosts of the own network with PORTREEVE_ALLOWED_PRIVATE_HOSTS.',
    )
  }
  const shown = host.includes(':') ? `[${host}]` : host
  const clean = path.replace(/\/$/, '')
  const url = `${protocol}://${user ? `${user}@` : ''}${shown}${port === DEFAULT_PORT[protocol] ? '' : `:${port}`}${clean}`
  if (!agreesWithStandard(url, host, port)) throw bad('The address of the repository is not a valid URL.')
  return { protocol, host, port, ...(user ? { user } : {}), path: clean, url }
}

/**
 * Reads an `https://…`, `ssh://…` or `user@host:path` address. Throws GitError `invalid_url` or
 * `forbidden_host`, whose sentence and hint are meant for the user and never repeat the address. A credential
 * inside of the address is refused, not split off: it would have been in browser histories and logs before it
 * got here, and the user should know where it belongs.
 */
export function parseGitUrl(text: string, policy: OutboundPolicy): GitUrl {
  if (typeof text !== 'string' || text === '') throw bad('The address of the repository is empty.')
  if (text.length > MAX_LENGTH)
    throw bad(`The address of the repository is longer than ${MAX_LENGTH} characters.`)
  if (/[^\x21-\x7e]/.test(text))
    throw bad('The address of the repository holds spaces, control characters or letters outside of ASCII.')
  if (text.startsWith('-')) throw bad('No part of the address may start with "-".')
  if (/[?#]/.test(text))
    throw bad(
      'The address of the repository must not hold a query or a fragment.',
      'Remove everything from the ? or # on; a branch is given on its own.',
    )
  if (/[$`;|&<>(){}!"'\\*^]/.test(text))
    throw bad('The address of the repository holds characters that are not allowed.')
  const [, scheme, rest] = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/(.*)$/.exec(text) ?? []
  if (scheme !== undefined) return parseWithScheme(scheme, rest!, policy)

  const [, user, raw_host, path] = /^([^@/:]+)@([^:/@]+):(.+)$/.exec(text) ?? []
  if (user === undefined) throw bad('The address of the repository is not complete.')
  checkUser(user)
  const host = checkHost(raw_host!, 22, policy)
  checkPath(path!, false)
  const clean = path!.replace(/\/$/, '')
  return { protocol: 'ssh', host, port: 22, user, path: clean, url: `${user}@${host}:${clean}` }
}

/** The same, or undefined for an address that does not pass the rules: such a one gets no credential. */
export function readableGitUrl(
  text: string,
  policy: OutboundPolicy,
): ReturnType<typeof parseGitUrl> | undefined {
  try {
    return parseGitUrl(text, policy)
  } catch {
    return undefined
  }
}
