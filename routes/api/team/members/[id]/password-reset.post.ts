import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { PasswordResetLink } from '#server/identity/password-reset-schema'

/** Resets the password of a member. */
export default endpoint({
  summary: 'Reset the password of a member',
  description:
    'The old password stops at once and all sessions end; API keys and the second factor stay. A link that sets a new one, good for a day, goes out by mail, or stands in this answer when no mail can be sent.',
  access: 'admin',
  params: IdParam,
  status: 201,
  response: data(PasswordResetLink),
  errors: ['NOT_FOUND'],
  handler: async ({ actor, params, services }) => ({
    data: await services.identity.password_reset.give(actor, params.id),
  }),
})
