import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

/** Deletes a rule; what it found bad is forgotten. */
export default endpoint({
  summary: 'Delete an alert rule',
  description: 'Built-in rules cannot be deleted (409); turn them off instead.',
  access: 'developer',
  params: IdParam,
  response: data(Deleted),
  errors: ['NOT_FOUND', 'CONFLICT', 'FORBIDDEN'],
  handler({ actor, params, services }) {
    services.monitoring.alerts.remove(actor, params.id)
    return deleted(params.id)
  },
})
