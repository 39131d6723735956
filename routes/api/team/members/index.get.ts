import { endpoint } from '#server/endpoint'
import { list } from '#server/http/schemas'
import { Member, MemberQuery } from '#server/identity/team-schema'

/** The users of the installation, newest first. */
export default endpoint({
  summary: 'List users of the installation',
  description: 'With their project roles. `status=invited` lists invitations that were not accepted yet.',
  access: 'admin',
  query: MemberQuery,
  response: list(Member),
  handler: ({ query, services }) => services.identity.team.list(query),
})
