import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { PasswordResetBody, PasswordWasReset } from '#server/identity/password-reset-schema'

/** Sets a new password with a link. */
export default endpoint({
  summary: 'Set a new password with the token of a link',
  description:
    'The token is the part of the link behind the `#`. Ends all sessions of the user; log in afterwards with the new password. An unknown, used or expired token is 404.',
  access: 'public',
  body: PasswordResetBody,
  example: { token: 'the-part-of-the-link-behind-the-hash', new_password: 'violet harbour eleven kites' },
  response: data(PasswordWasReset),
  errors: ['NOT_FOUND', 'RATE_LIMITED'],
  handler: async ({ body, facts, services }) => ({
    data: { email: await services.identity.password_reset.use(body, facts) },
  }),
})
