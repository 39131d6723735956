import { endpoint } from '#server/endpoint'
import { list, sortedPaging } from '#server/http/schemas'
import { Session } from '#server/identity/schema'

/** The caller's open sessions, newest first. */
export default endpoint({
  summary: 'List own sessions',
  description:
    'With device, address and last use (kept to the minute), so that a session that is not yours stands out.',
  access: 'self',
  query: sortedPaging(['created_at', 'last_used_at']),
  response: list(Session),
  handler: ({ actor, query, services }) => services.identity.sessions.list(actor, query),
})
