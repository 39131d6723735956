import { endpoint } from '#server/endpoint'
import { list, sortedPaging } from '#server/http/schemas'
import { Registry } from '#server/registries/schema'

/** Image registries that the installation can log in at, newest first. */
export default endpoint({
  summary: 'List image registries',
  description: 'Never their passwords. Every project pulls with them.',
  access: 'developer',
  effect: 'read',
  query: sortedPaging(['name', 'host', 'created_at']),
  response: list(Registry),
  handler: ({ query, services }) => services.registries.list(query),
})
