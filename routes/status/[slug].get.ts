import { randomBytes } from 'node:crypto'
import { defineEventHandler, getQuery, getRouterParam, setResponseHeader, setResponseStatus } from 'h3'
import type { Services } from '#server/modules'

/** The public status page of a project, or its feed with `?format=atom`. Needs no account and no script. */
export default defineEventHandler((event) => {
  const pages = (event.context.services as Services | undefined)?.monitoring.status_pages
  const slug = getRouterParam(event, 'slug') ?? ''
  const nonce = randomBytes(16).toString('base64')
  const is_feed = getQuery(event).format === 'atom'
  const text = is_feed ? pages?.feed(slug) : pages?.html(slug, nonce)
  setResponseHeader(event, 'Content-Security-Policy', `default-src 'none'; style-src 'nonce-${nonce}'`)
  setResponseHeader(event, 'Content-Type', is_feed ? 'application/atom+xml' : 'text/html; charset=utf-8')
  if (text !== undefined) return text
  setResponseStatus(event, 404)
  setResponseHeader(event, 'Content-Type', 'text/plain; charset=utf-8')
  return 'There is no such status page.'
})
