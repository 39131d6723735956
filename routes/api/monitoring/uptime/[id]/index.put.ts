import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { UptimeCheck, UptimeCheckChange } from '#server/monitoring/uptime/schema'

/** Changes, pauses or resumes a check. */
export default endpoint({
  summary: 'Change an uptime check',
  description: 'It looks again at once.',
  access: 'developer',
  scope: { noun: 'uptime_check' },
  params: IdParam,
  body: UptimeCheckChange,
  example: { interval_s: 30 },
  response: data(UptimeCheck),
  errors: ['NOT_FOUND'],
  handler: ({ actor, params, body, services }) => ({
    data: services.monitoring.uptime.change(actor, params.id, body),
  }),
})
