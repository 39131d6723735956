import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

/** Deletes a check with its results. */
export default endpoint({
  summary: 'Delete an uptime check',
  description: 'Its alert ends with it.',
  access: 'developer',
  scope: { noun: 'uptime_check' },
  params: IdParam,
  response: data(Deleted),
  errors: ['NOT_FOUND'],
  handler({ actor, params, services }) {
    services.monitoring.uptime.remove(actor, params.id)
    return deleted(params.id)
  },
})
