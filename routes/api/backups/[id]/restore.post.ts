import { Restore, RestoreBackup } from '#server/backups/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/** Restores a backup in place or into a new resource. */
export default endpoint({
  summary: 'Restore a backup',
  description:
    'The checksum of the whole archive is compared first; then the data go into something new, which takes the place of the present one only once it is whole and answers. The platform is restored on the host with `portreeve restore`.',
  access: 'owner',
  scope: { noun: 'backup' },
  params: IdParam,
  body: RestoreBackup,
  example: { mode: 'new', name: 'orders-of-monday' },
  status: 201,
  response: data(Restore),
  errors: ['NOT_FOUND', 'CONFLICT'],
  async handler({ actor, params, body, services }) {
    await services.backups.requireAdmitted(params.id, body)
    return { data: services.backups.restore(actor, params.id, body) }
  },
})
