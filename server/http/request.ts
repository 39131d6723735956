import type { IncomingMessage } from 'node:http'
import { getRequestHeader, type H3Event } from 'h3'
import type { Credentials } from '#server/kernel/access'
import { badRequest } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import type { HttpPorts, RequestFacts } from './context.ts'
import { readSession } from './session-cookie.ts'

/** `::ffff:10.0.0.1` and `10.0.0.1` are one peer. */
export const plainAddress = (address: string) => address.replace(/^::ffff:(?=\d+\.)/i, '')

/** Whether a method changes something. */
export const mutates = (method: string) => !['GET', 'HEAD', 'OPTIONS'].includes(method)

/** Id of the request, made once. */
export function requestId(event: H3Event): string {
  return (event.context.request_id ??= newId('req')) as string
}

/**
 * Path of the request as it was sent: the HTTP library decodes `event.path`, so that `%3F` would
 * begin a query there.
 */
export const rawPath = (event: H3Event): string =>
  (event.node.req.originalUrl ?? event.node.req.url ?? '/').split('?')[0]!

/** What may stand for a host and its port. */
const HOST = /^[\w.~!$&'()*+,;=%:[\]-]*$/
/**
 * Throws BAD_REQUEST for a request with two hosts, or with what is none: whoever reads the other
 * one of them takes it for a request to somebody else. Source: RFC 9112, section 3.2.
 */
export function requireOneHost({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): void {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (name.length !== 4 || name.toLowerCase() !== 'host') continue
    hosts += 1
    if (hosts > 1 || !HOST.test(rawHeaders[at + 1]!))
      throw badRequest('A request names its host once, in one header `Host`.')
  }
}

/** A host name without its port. */
const nameOf = (host = ''): string => host.replace(/:\d+$/, '').toLowerCase()

/** The secret part of a hook's address must not reach a log or the audit trail. */
const withoutToken = (path: string): string =>
  path.replace(/^(\/api\/webhooks\/(?:git|deploy)\/)[^/]+/, '$1…')

export function factsOf(event: H3Event, services: HttpPorts): RequestFacts {
  const peer = plainAddress(event.node.req.socket.remoteAddress ?? '')
  const client = services.http.client(peer, {
    forwarded_for: getRequestHeader(event, 'x-forwarded-for'),
    forwarded_proto: getRequestHeader(event, 'x-forwarded-proto'),
    real_ip: getRequestHeader(event, 'x-real-ip'),
    edge_proof: getRequestHeader(event, 'x-portreeve-edge'),
  })
  return {
    id: requestId(event),
    method: event.method,
    path: withoutToken(rawPath(event)),
    address: client.address,
    secure: client.secure,
    ...(client.by_edge && client.secure ? { edge_name: nameOf(getRequestHeader(event, 'host')) } : {}),
    user_agent: (getRequestHeader(event, 'user-agent') ?? '').slice(0, 512),
  }
}

export function credentialsOf(event: H3Event, { secure, method }: RequestFacts): Credentials {
  const header = (name: string) => getRequestHeader(event, name)
  return {
    authorization: header('authorization'),
    api_key: header('x-api-key'),
    session: readSession(header('cookie'), secure),
    csrf_token: header('x-csrf-token'),
    origin: header('origin'),
    fetch_site: header('sec-fetch-site'),
    host: header('host'),
    mutating: mutates(method),
  }
}
