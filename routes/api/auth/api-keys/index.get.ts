import { endpoint } from '#server/endpoint'
import { list, PagingQuery } from '#server/http/schemas'
import { ApiKey } from '#server/identity/schema'

/** The caller's API keys, newest first. */
export default endpoint({
  summary: 'List own API keys',
  description: 'Never their values: those are shown once, when a key is created.',
  access: 'self',
  query: PagingQuery,
  response: list(ApiKey),
  handler: ({ actor, query, services }) => services.identity.api_keys.list(actor, query),
})
