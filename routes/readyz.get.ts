import { defineEventHandler, setResponseStatus } from 'h3'
import { handOver } from '#server/http/reply'
import type { Services } from '#server/modules'

/** Ready: database, engine and edge answer. 503 while one of them does not, with the reason. */
export default defineEventHandler(async (event) => {
  const services = event.context.services as Services | undefined
  const readiness = services
    ? await services.system.readiness()
    : { status: 'degraded', checks: { start: { ok: false, message: 'Portreeve is starting.' } } }
  if (readiness.status !== 'ok') setResponseStatus(event, 503)
  return handOver(event, readiness)
})
