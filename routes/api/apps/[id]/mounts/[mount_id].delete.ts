import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted } from '#server/http/schemas'
import { MountParams } from '#server/volumes/schema'

export default endpoint({
  summary: 'Remove a mount of an app',
  description: 'Takes effect with the next deployment. The volume stays with what is in it.',
  access: 'developer',
  scope: { noun: 'app' },
  params: MountParams,
  response: data(Deleted),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler({ actor, params, services }) {
    services.volumes.unmount(actor, params.id, params.mount_id)
    return deleted(params.mount_id)
  },
})
