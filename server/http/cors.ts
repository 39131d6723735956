import { appendResponseHeader, type H3Event, sendNoContent, setResponseHeader } from 'h3'
import type { HttpPorts } from './context.ts'

const METHODS = 'GET, POST, PUT, DELETE'
const HEADERS = 'Authorization, X-API-Key, Content-Type, Idempotency-Key, If-None-Match'
const SHOWN = 'X-Request-Id, ETag, Retry-After, Idempotency-Replayed'
/** Seconds for which a browser remembers what it was told. */
const REMEMBERED_S = 600

/**
 * Lets pages of the origins that an administrator has named read answers; none by default. Cookies stay out of
 * it: such pages prove who they are with a token or an API key. True when the request was a question of the
 * browser, which is answered.
 */
export function allowOrigin(event: H3Event): boolean {
  const { origin } = event.node.req.headers
  const services = event.context.services as HttpPorts | undefined
  const allowed = services?.http.cors_origins() ?? []
  // Answers differ by who asks from now on, those without the header too.
  if (allowed.length > 0) appendResponseHeader(event, 'Vary', 'Origin')
  if (!origin || !allowed.includes(origin)) return false
  setResponseHeader(event, 'Access-Control-Allow-Origin', origin)
  setResponseHeader(event, 'Access-Control-Expose-Headers', SHOWN)
  if (event.method !== 'OPTIONS' || !event.node.req.headers['access-control-request-method']) return false
  setResponseHeader(event, 'Access-Control-Allow-Methods', METHODS)
  setResponseHeader(event, 'Access-Control-Allow-Headers', HEADERS)
  setResponseHeader(event, 'Access-Control-Max-Age', REMEMBERED_S)
  return true
}

/** The answer to a question of a browser: it may go on. */
export const answerPreflight = (event: H3Event): void => sendNoContent(event, 204)
