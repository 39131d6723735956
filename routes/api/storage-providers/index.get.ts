import { endpoint } from '#server/endpoint'
import { list, sortedPaging } from '#server/http/schemas'
import { StorageProvider } from '#server/storage-providers/schema'

/** Where backups can be kept, newest first. */
export default endpoint({
  summary: 'List backup destinations',
  description: 'Without their secrets. A fresh installation has one, a folder of the server.',
  access: 'viewer',
  query: sortedPaging(['name', 'kind', 'created_at']),
  response: list(StorageProvider),
  handler: ({ query, services }) => services.storage_providers.list(query),
})
