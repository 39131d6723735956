import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { Me } from '#server/identity/schema'

/** Who the caller is and what they may do. */
export default endpoint({
  summary: 'Get the authenticated user',
  description:
    'With the permissions on the installation and the role in each project, narrowed as the API key is that was used.',
  access: 'self',
  response: data(Me),
  allow_stale_password: true,
  handler: ({ actor, services }) => ({ data: services.identity.account.me(actor) }),
})
