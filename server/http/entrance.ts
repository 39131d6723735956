import { type H3Event, send, setResponseHeader, setResponseStatus } from 'h3'
import { ApiError, notFound, starting } from '#server/kernel/errors'
import { createLog } from '#server/kernel/log'
import type { HttpPorts } from './context.ts'
import { allowOrigin, answerPreflight } from './cors.ts'
import { SECURITY_HEADERS, toErrorAnswer } from './errors.ts'
import { decodeSegment } from './input.ts'
import { rawPath, requestId, requireOneHost } from './request.ts'
import { endUnsent, endUntaken } from './untaken.ts'
import { createRouteTable, segmentsOf, type ServedRoute } from './route-table.ts'

/** Served below `/api` without being an endpoint: the WebSocket answers a plain GET itself. */
const BESIDES: readonly ServedRoute[] = [{ path: '/api/ws', method: 'get' }]
/** Source: security.md 2.17. */
const MAX_URL_BYTES = 8192

/**
 * What happens to every request before its route: the headers of every response are set, and what
 * no route could answer rightly is refused, with the envelope of every other error.
 */
export function createEntrance(routes: readonly ServedRoute[]): (event: H3Event) => void {
  const table = createRouteTable([...routes, ...BESIDES])
  return (event) => {
    endUntaken(event.node)
    endUnsent(event.node)
    setResponseHeader(event, 'X-Request-Id', requestId(event))
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) setResponseHeader(event, name, value)
    requireOneHost(event.node.req)
    if ((event.node.req.url ?? '').length > MAX_URL_BYTES)
      throw new ApiError('BAD_REQUEST', `The address is longer than ${MAX_URL_BYTES} bytes.`)
    const path = rawPath(event)
    // Two slashes, and another case of `/api`, would reach the pages, which answer everything with
    // 200.
    if (/[/\\]{2}/.test(path)) throw notFound('path')
    const inApi = /^\/api(\/|$)/i.test(path)
    if (inApi && allowOrigin(event)) return answerPreflight(event)
    const segments = segmentsOf(path).map(decodeSegment)
    const allowed = inApi ? table.methods(segments) : ['GET', 'HEAD']
    // The router would take an encoded question mark for the beginning of a query.
    if (allowed.length === 0 || segments.some((segment) => segment.includes('?'))) throw notFound('path')
    if (!allowed.includes(event.method)) {
      setResponseHeader(event, 'Allow', allowed.join(', '))
      throw new ApiError('METHOD_NOT_ALLOWED', `This path accepts ${allowed.join(', ')}.`)
    }
    if (inApi && !event.context.services) throw starting()
  }
}

/**
 * Answers an error that happened outside of any endpoint: unknown paths, wrong methods, what the
 * HTTP library refuses.
 */
export function answerError(error: unknown, event: H3Event): Promise<void> {
  const services = event.context.services as HttpPorts | undefined
  const id = requestId(event)
  const answer = toErrorAnswer(error, id, services?.http.log ?? createLog('text', 'error'))
  for (const [name, value] of Object.entries({
    ...SECURITY_HEADERS,
    ...answer.headers,
    'X-Request-Id': id,
  }))
    setResponseHeader(event, name, value)
  closeWhenUnread(event)
  setResponseStatus(event, answer.status, '')
  return send(event, JSON.stringify(answer.body), 'application/json')
}

/** Bytes of a refused body that are still worth reading, to keep the connection. */
const WORTH_READING_BYTES = 65_536

/**
 * Ends the connection after a refusal when a large body is still on its way, instead of reading it
 * all for nothing.
 */
export function closeWhenUnread(event: H3Event): void {
  const { req } = event.node
  if (req.complete) return
  const chunked = req.headers['transfer-encoding'] !== undefined
  if (chunked || Number(req.headers['content-length'] ?? 0) > WORTH_READING_BYTES)
    setResponseHeader(event, 'Connection', 'close')
  // Nobody takes what a refused upload was piped to, and the rest would stand before the next
  // request.
  else req.unpipe().resume()
}
