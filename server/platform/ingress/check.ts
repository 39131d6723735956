import { isIP } from 'node:net'
import { dnsName } from '#server/kernel/dns-names'
import { isNetwork } from '#server/kernel/networks'
import { MAX_PAGE_BYTES, PAGE_STATUSES } from './render/error-pages.ts'
import type { Challenge, RefusedRoute, Route } from './ingress.ts'
import { IngressError } from './ingress.ts'
import { hostPathName, hostPathsOf } from './render/host-paths.ts'
import { redirectComplaint } from './render/redirects.ts'
import { encodeWord } from './render/map-encoding.ts'

const ROUTE_ID = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/
/** A DNS name in lower case, maybe with a wildcard as its first label. */
export const HOSTNAME = dnsName({ wildcard: true })

function refuse(route: Route, message: string): never {
  throw new IngressError(
    `The route of ${ROUTE_ID.test(route.id) ? route.id : 'an app'} cannot be set: ${message}`,
  )
}

/**
 * Refuses a route whose fields could mean something else in a configuration file than they say. The edge
 * writes only what passed here, so that no name or address can ever become a directive.
 */
export function checkRoute(route: Route): void {
  if (!ROUTE_ID.test(route.id)) refuse(route, 'its id has characters that the edge does not take.')
  if (route.app_id !== undefined && !ROUTE_ID.test(route.app_id))
    refuse(route, 'the id of its app has characters that the edge does not take.')
  for (const name of route.hostnames) {
    if (!HOSTNAME.test(name)) refuse(route, 'a host name is not a lower-case DNS name.')
    if (isIP(name) !== 0) refuse(route, 'a host name is an IP address.')
  }
  if (new Set(route.hostnames).size !== route.hostnames.length) refuse(route, 'a host name is listed twice.')
  for (const { address, port } of route.servers) {
    if (isIP(address) === 0 || address.includes('%')) refuse(route, 'a server is not an IP address.')
    if (!Number.isInteger(port) || port < 1 || port > 65_535) refuse(route, 'a server has no valid port.')
  }
  checkPlaces(route)
  checkOptions(route)
  if (
    new Set(route.servers.map((server) => `${server.address} ${server.port}`)).size !== route.servers.length
  )
    refuse(route, 'a server is listed twice.')
}

/** Characters that mean the same in a path, in a map and in a command. */
const PATH = /^\/$|^(\/(?!\.{1,2}(\/|$))[A-Za-z0-9._~@:+,=-]+)+$/
const MAX_REDIRECTS = 1_000
/** Each may cost a request a tenth of a millisecond. */
const MAX_PATTERNS = 200

function checkPlaces(route: Route): void {
  const { path = '/', aliases = {}, redirects = [] } = route
  if (!PATH.test(path) || path.length > 500)
    refuse(route, 'its path is not a list of plain segments, each behind a slash.')
  for (const [alias, target] of Object.entries(aliases)) {
    if (![alias, target].every((name) => HOSTNAME.test(name) && !name.startsWith('*') && isIP(name) === 0))
      refuse(route, 'an alias is not a lower-case DNS name that leads to another one.')
    if (route.hostnames.includes(alias) || Object.hasOwn(aliases, target))
      refuse(route, `the alias ${alias} leads in a circle.`)
  }
  if (redirects.length > MAX_REDIRECTS) refuse(route, `it has more than ${MAX_REDIRECTS} redirects.`)
  if (redirects.filter(({ kind }) => kind === 'regex').length > MAX_PATTERNS)
    refuse(route, `it has more than ${MAX_PATTERNS} redirects with a regular expression.`)
  for (const redirect of redirects) {
    const complaint = redirectComplaint(redirect)
    if (complaint !== undefined) refuse(route, complaint)
  }
}

const HEADER_NAME = /^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/
/** Headers of the connection itself: setting one would break the answer's own framing. */
const FRAMING = new Set([
  'connection',
  'content-length',
  'transfer-encoding',
  'upgrade',
  'te',
  'trailer',
  'keep-alive',
  'content-encoding',
])
/** What fits into one command of the edge. */
const MAX_HEADER = 10_000
const isBetween = (value: number, low: number, high: number): boolean =>
  Number.isSafeInteger(value) && value >= low && value <= high

function checkOptions(route: Route): void {
  const {
    allowed_addresses = [],
    basic_auth,
    body_limit_bytes = 0,
    request_timeout_ms = 1,
    response_headers = {},
  } = route
  if (!allowed_addresses.every(isNetwork))
    refuse(route, 'an allowed address is neither an IP address nor a network.')
  if (
    basic_auth &&
    !(/^[A-Za-z0-9+/]{32}$/.test(basic_auth.salt) && /^[0-9A-F]{64}$/.test(basic_auth.digest))
  )
    refuse(route, 'its name and password are not in the form that the edge takes.')
  if (
    Object.entries(route.error_pages ?? {}).some(
      ([status, page]) =>
        !PAGE_STATUSES.includes(Number(status)) ||
        Buffer.byteLength(page) > MAX_PAGE_BYTES ||
        page === '' ||
        page.includes('\0'),
    )
  ) {
    refuse(
      route,
      `one of its pages is for a status that the edge does not answer, empty, or longer than ${MAX_PAGE_BYTES} bytes.`,
    )
  }
  if (route.proof !== undefined && !/^[0-9a-f]{64}$/.test(route.proof))
    refuse(route, 'its proof is not in the form that the edge takes.')
  if (!isBetween(body_limit_bytes, 0, 2 ** 40)) refuse(route, 'its body limit is not a number of bytes.')
  if (!isBetween(request_timeout_ms, 1, 86_400_000))
    refuse(route, 'its time limit is not between a millisecond and a day.')
  for (const [name, value] of Object.entries(response_headers)) {
    if (!HEADER_NAME.test(name) || FRAMING.has(name.toLowerCase()))
      refuse(route, 'one of its headers has a name that cannot be set.')
    if (encodeWord(value).length > MAX_HEADER) refuse(route, `its header ${name} is too long.`)
    if (!/^[ -~]{0,4096}$/.test(value))
      refuse(route, `its header ${name} has characters that a header cannot have.`)
  }
}

/** Refuses a challenge that could answer more than the one question it is for. */
export function checkChallenge({ hostname, token, key_authorization }: Challenge): void {
  if (
    !HOSTNAME.test(hostname) ||
    hostname.startsWith('*') ||
    !/^[A-Za-z0-9_-]{1,256}$/.test(token) ||
    !/^[A-Za-z0-9_.-]{1,512}$/.test(key_authorization)
  ) {
    throw new IngressError(
      'The challenge of the certificate authority cannot be answered: it has characters that the edge does not take.',
    )
  }
}

/**
 * Refuses a route that claims a name and path of another one: who serves it must never depend on the order of
 * changes.
 */
export function checkClaims(
  route: Route,
  ownerOf: (hostname: string, path: string) => string | undefined,
): void {
  for (const [hostname, path] of hostPathsOf(route)) {
    const owner = ownerOf(hostname, path)
    if (owner !== undefined && owner !== route.id)
      refuse(route, `${hostPathName(hostname, path)} already belongs to ${owner}.`)
  }
}

/**
 * Sorts routes into those that can be served together and those that cannot, each with its reason; the first
 * to claim a name keeps it.
 */
export function sortRoutes(routes: Route[]): { accepted: Route[]; refused: RefusedRoute[] } {
  const owners = new Map<string, string>()
  const ids = new Set<string>()
  const accepted: Route[] = []
  const refused: RefusedRoute[] = []
  for (const route of routes) {
    try {
      checkRoute(route)
      if (ids.has(route.id)) refuse(route, 'another route has the same id.')
      checkClaims(route, (hostname, path) => owners.get(hostPathName(hostname, path)))
      ids.add(route.id)
      for (const [hostname, path] of hostPathsOf(route)) owners.set(hostPathName(hostname, path), route.id)
      accepted.push(route)
    } catch (error) {
      if (!(error instanceof IngressError)) throw error
      refused.push({ route_id: route.id, message: error.message })
    }
  }
  return { accepted, refused }
}
