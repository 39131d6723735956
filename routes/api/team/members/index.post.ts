import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { CreatedInvitation, NewMember } from '#server/identity/team-schema'

/** Invites somebody to the installation. */
export default endpoint({
  summary: 'Invite a user',
  description:
    'The invitation goes out by mail; without a mail server the answer holds the link and its token, once. The part of the link behind the `#` is the token that `POST /api/auth/invitations/accept` takes. The invitation is bound to the address, works once and ends after 7 days. Inviting again replaces it.',
  access: 'admin',
  body: NewMember,
  example: { email: 'ada@example.com', role: 'member', projects: [] },
  status: 201,
  response: data(CreatedInvitation),
  errors: ['CONFLICT'],
  handler: async ({ actor, body, services }) => ({
    data: await services.identity.invitations.create(actor, body),
  }),
})
