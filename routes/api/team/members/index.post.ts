import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { CreatedInvitation, NewMember } from '#server/identity/team-schema'

/** Invites somebody to the installation. */
export default endpoint({
  summary: 'Invite a user',
  description: 'The invitation goes out by mail; without a mail server the answer holds the link, once. It is bound to the address, works once and ends after 7 days. Inviting again replaces it.',
  access: 'admin',
  body: NewMember,
  example: { email: 'ada@example.com', role: 'member', projects: [] },
  status: 201,
  response: data(CreatedInvitation),
  errors: ['CONFLICT'],
  handler: async ({ actor, body, services }) => ({ data: await services.identity.invitations.create(actor, body) }),
})
