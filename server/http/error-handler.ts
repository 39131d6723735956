import { send, setResponseHeader, setResponseStatus } from 'h3'
import { defineNitroErrorHandler } from 'nitropack/runtime'
import { createLog } from '#server/kernel/log'
import type { HttpPorts } from './context.ts'
import { SECURITY_HEADERS, toErrorAnswer } from './errors.ts'
import { requestId } from './request.ts'

/** Errors outside of any endpoint: unknown paths, wrong methods, what the HTTP library refuses. Same envelope. */
export default defineNitroErrorHandler((error, event) => {
  const services = event.context.services as HttpPorts | undefined
  const id = requestId(event)
  const answer = toErrorAnswer(error, id, services?.http.log ?? createLog('text', 'error'))
  for (const [name, value] of Object.entries({ ...SECURITY_HEADERS, ...answer.headers, 'X-Request-Id': id })) setResponseHeader(event, name, value)
  setResponseStatus(event, answer.status, '')
  return send(event, JSON.stringify(answer.body), 'application/json')
})
