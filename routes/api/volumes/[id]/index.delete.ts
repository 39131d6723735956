import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

/** The row stays, `deleting`, until the data is gone, so that a crash leaves something to go on with. */
export default endpoint({
  summary: 'Delete a volume with everything in it',
  description:
    'Answers 409 while an app mounts it, and while an instance of an earlier release still holds it. What was in it cannot be brought back without a backup.',
  access: 'owner',
  scope: { noun: 'volume' },
  params: IdParam,
  response: data(Deleted),
  errors: ['NOT_FOUND', 'CONFLICT', 'ENGINE_UNAVAILABLE'],
  async handler({ actor, params, services }) {
    await services.volumes.remove(actor, params.id)
    return deleted(params.id)
  },
})
