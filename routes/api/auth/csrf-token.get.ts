import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { CsrfToken } from '#server/identity/schema'

/** The token that a cookie session needs for requests that change something. */
export default endpoint({
  summary: 'Get the CSRF token of the session',
  description:
    'The token is bound to the session and stays the same until it ends. Only cookie sessions need it.',
  access: 'self',
  response: data(CsrfToken),
  errors: ['BAD_REQUEST'],
  allow_stale_password: true,
  handler: ({ actor, services }) => ({ data: services.identity.sessions.csrfToken(actor) }),
})
