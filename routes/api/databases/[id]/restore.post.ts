import { Restore, RestoreDatabase } from '#server/backups/schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/** Puts the data of a backup in the place of those of a database. */
export default endpoint({
  summary: 'Restore a database from one of its backups',
  description:
    'The checksum is compared first; the data go into a new volume, and take the place of the present ones once the restored server answers. The old volume is kept until `PUT /api/databases/:id` says with `previous_volume` what becomes of it. `POST /api/backups/:id/restore` restores into a new database.',
  access: 'owner',
  scope: { noun: 'database' },
  params: IdParam,
  body: RestoreDatabase,
  example: { backup_id: 'bkp_5k2m9x7q1w3e8r6t4y0z' },
  status: 201,
  response: data(Restore),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ actor, params, body, services }) => ({
    data: services.backups.restore(actor, body.backup_id, { mode: 'in_place' }, params.id),
  }),
})
