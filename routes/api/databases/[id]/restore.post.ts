import { Restore, RestoreDatabase } from '#server/backups/schema'
import { MAX_DUMP_BYTES } from '#server/backups/uploaded-dump'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'

/** Puts the data of a backup in the place of those of a database. */
export default endpoint({
  summary: 'Restore a database from one of its backups, from an uploaded dump, or as it was at a moment',
  description:
    'The checksum is compared first; the data go into a new volume, and take the place of the present ones once the restored server answers. The old volume is kept until `PUT /api/databases/:id` says with `previous_volume` what becomes of it. A further restore in its place keeps what there is in `older_volumes`; it is refused with 409 only while the project holds more than its quota `storage_bytes`. A dump is sent as the body itself: made by the tool of the engine, plain or packed with gzip or zstd, at most 16 GiB. It is kept as a backup first. With `at`, PostgreSQL goes back to any moment between `earliest` and now that its `point_in_time` shows: also one that is a second ago. With `mode` «new» a new database is made, and this one is left alone.',
  access: 'owner',
  scope: { noun: 'database' },
  params: IdParam,
  body: RestoreDatabase,
  upload: {
    media_types: ['application/octet-stream', 'application/gzip', 'application/zstd'],
    max_bytes: MAX_DUMP_BYTES,
  },
  example: { backup_id: 'bkp_5k2m9x7q1w3e8r6t4y0z' },
  status: 201,
  response: data(Restore),
  errors: ['NOT_FOUND', 'CONFLICT', 'DISK_FULL'],
  handler: async ({ actor, params, body, upload, services }) => ({
    data: upload
      ? await services.backups.restoreUpload(actor, params.id, upload.stream)
      : services.backups.restoreDatabase(actor, params.id, body),
  }),
})
