import { PendingKey } from '#server/apps/discard'
import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'
import * as v from 'valibot'

export default endpoint({
  summary: 'Discard one pending change of an app',
  description:
    'The field or the variable becomes what the live release has; nothing is deployed. A secret comes back without being shown. A variable that referred to others comes back with the value that it had. What is kept elsewhere (mounts, linked databases, what a variable refers to) is 409, and is changed there.',
  access: 'developer',
  scope: { noun: 'app' },
  params: v.object({ ...IdParam.entries, key: PendingKey }),
  response: data(Deleted),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler({ actor, params, services }) {
    services.apps.discard(actor, params.id, params.key)
    return deleted(params.key)
  },
})
