import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { StorageTest } from '#server/storage-providers/schema'

/** Proves that a place for backups can be written, read and cleaned. */
export default endpoint({
  summary: 'Test a backup destination',
  description:
    'Writes an object, reads it back and deletes it. 409 with a sentence when the destination refuses or cannot be reached.',
  access: 'admin',
  params: IdParam,
  response: data(StorageTest),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: async ({ params, services }) => ({ data: await services.storage_providers.test(params.id) }),
})
