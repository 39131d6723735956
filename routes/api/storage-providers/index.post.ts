import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { NewStorageProvider, StorageProvider } from '#server/storage-providers/schema'

/** Adds a place for backups, after trying it. */
export default endpoint({
  summary: 'Add a backup destination',
  description:
    'An object is written, read back and deleted before the destination is kept; what goes wrong is 422 with a sentence. An SFTP server must be approved by the fingerprint of its key: without `host_key` the error names the one that it shows.',
  access: 'admin',
  body: NewStorageProvider,
  example: { name: 'Nightly', kind: 'local', config: { folder: 'nightly' } },
  status: 201,
  response: data(StorageProvider),
  errors: ['CONFLICT'],
  handler: async ({ actor, body, services }) => ({
    data: await services.storage_providers.add(actor, body as NewStorageProvider),
  }),
})
