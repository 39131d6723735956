import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { ForgottenPassword, ResetAsked } from '#server/identity/password-reset-schema'

/** Sends a link that sets a new password. */
export default endpoint({
  summary: 'Ask for a link that sets a new password',
  description:
    'Sends the link to the address, if somebody has it; the answer is the same for every address. The link works once, for an hour. 409 without a mail server: ask an administrator, or run `portreeve reset-password` on the server. The second factor stays what it is.',
  access: 'public',
  body: ForgottenPassword,
  example: { email: 'ada@example.com' },
  response: data(ResetAsked),
  errors: ['CONFLICT', 'RATE_LIMITED'],
  handler({ body, facts, services }) {
    services.identity.password_reset.ask(body.email, facts)
    return { data: { asked: true as const } }
  },
})
