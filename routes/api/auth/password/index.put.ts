import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { PasswordChange, PasswordChanged } from '#server/identity/schema'

/** Changes the caller's password and ends their other sessions. */
export default endpoint({
  summary: 'Change own password',
  description:
    'Needs the current password. Every other session of the user ends, with its token, cookie and WebSockets; the one that makes the change goes on. API keys stay.',
  access: 'self',
  body: PasswordChange,
  example: {
    current_password: 'correct horse battery staple',
    new_password: 'violet harbour eleven kites',
  },
  response: data(PasswordChanged),
  errors: ['INVALID_CREDENTIALS', 'CONFLICT', 'RATE_LIMITED'],
  allow_stale_password: true,
  handler: async ({ actor, body, services }) => ({
    data: {
      changed: true as const,
      sessions_ended: await services.identity.account.changePassword(actor, body),
    },
  }),
})
