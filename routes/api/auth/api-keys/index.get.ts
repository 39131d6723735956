import { endpoint } from '#server/endpoint'
import { list, sortedPaging } from '#server/http/schemas'
import { ApiKey } from '#server/identity/schema'

/** The caller's API keys, newest first. */
export default endpoint({
  summary: 'List own API keys',
  description: 'Never their values: those are shown once, when a key is created.',
  access: 'self',
  query: sortedPaging(['name', 'created_at', 'last_used_at']),
  response: list(ApiKey),
  handler: ({ actor, query, services }) => services.identity.api_keys.list(actor, query),
})
