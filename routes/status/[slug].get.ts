import { defineEventHandler, getQuery, getRouterParam, setResponseHeader, setResponseStatus } from 'h3'
import { takePublicShare } from '#server/http/public-share'
import { handOver } from '#server/http/reply'
import type { Services } from '#server/modules'
import { STATUS_POLICY } from '#server/monitoring/status-page'

/** The public status page of a project, or its feed with `?format=atom`. Needs no account and no script. */
export default defineEventHandler(async (event) => {
  const services = event.context.services as Services | undefined
  const share = services && (await takePublicShare(event, services))
  const pages = services?.monitoring.status_pages
  const slug = getRouterParam(event, 'slug') ?? ''
  const is_feed = getQuery(event).format === 'atom'
  const bytes = is_feed ? pages?.feed(slug) : pages?.html(slug)
  setResponseHeader(event, 'Content-Security-Policy', STATUS_POLICY)
  setResponseHeader(event, 'Content-Type', is_feed ? 'application/atom+xml' : 'text/html; charset=utf-8')
  if (bytes !== undefined) {
    share?.hold(bytes.length)
    return handOver(event, bytes)
  }
  setResponseStatus(event, 404)
  setResponseHeader(event, 'Content-Type', 'text/plain; charset=utf-8')
  return 'There is no such status page.'
})
