import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { RefreshResult } from '#server/identity/schema'

/** Exchanges the current token for a new one, while it is still valid. */
export default endpoint({
  summary: 'Refresh the token',
  description:
    'The new token is valid for another 30 days. The old one counts for one more minute, so that requests under way do not fail; then it answers 401. The session and its cookie stay the same.',
  access: 'self',
  effect: 'read',
  response: data(RefreshResult),
  errors: ['BAD_REQUEST'],
  handler: async ({ actor, services }) => ({
    data: await services.identity.sessions.refresh(actor),
  }),
})
