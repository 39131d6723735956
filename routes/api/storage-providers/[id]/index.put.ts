import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { StorageProvider, StorageProviderChange } from '#server/storage-providers/schema'

/** Changes a place for backups, after trying it. */
export default endpoint({
  summary: 'Change a backup destination',
  description:
    'Fields of `config` that are not named stay, secrets included; null removes one. What changed is tried before it is kept. Backups that lie at the old place are looked for at the new one: move them along.',
  access: 'admin',
  params: IdParam,
  body: StorageProviderChange,
  example: { name: 'Nightly, Frankfurt', is_default: true },
  response: data(StorageProvider),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: async ({ actor, params, body, services }) => ({
    data: await services.storage_providers.change(actor, params.id, body),
  }),
})
