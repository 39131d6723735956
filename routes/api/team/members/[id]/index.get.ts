import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Member } from '#server/identity/team-schema'

/** One user, or one open invitation. */
export default endpoint({
  summary: 'Get a user',
  description: 'A user with role, state and project roles, or an invitation that was not accepted yet.',
  access: 'admin',
  params: IdParam,
  response: data(Member),
  errors: ['NOT_FOUND'],
  handler: ({ params, services }) => ({ data: services.identity.team.get(params.id) }),
})
