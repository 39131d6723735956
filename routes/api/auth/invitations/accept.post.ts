import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { User } from '#server/identity/schema'
import { AcceptedInvitation } from '#server/identity/team-schema'

/** Turns an invitation into a user, who can log in from then on. */
export default endpoint({
  summary: 'Accept an invitation',
  description:
    'The token is the part of the link behind the `#`, and counts once. An unknown, used or expired one is 404. Log in afterwards with the invited address and the new password.',
  access: 'public',
  body: AcceptedInvitation,
  example: {
    token: 'the-part-of-the-link-behind-the-hash',
    name: 'Ada Lovelace',
    password: 'violet harbour eleven kites',
  },
  status: 201,
  response: data(User),
  errors: ['NOT_FOUND', 'CONFLICT', 'RATE_LIMITED'],
  handler: async ({ body, facts, services }) => ({
    data: await services.identity.invitations.accept(body, facts),
  }),
})
