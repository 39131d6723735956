import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import { Member, MemberChange } from '#server/identity/team-schema'

/** Changes what a user may do. */
export default endpoint({
  summary: 'Change a user',
  description:
    'Role, disabled or not, and resetting two-factor authentication. Holds from the next request on. The last administrator who can act cannot be demoted or disabled. Whoever disables the last owner of a project becomes owner there.',
  access: 'admin',
  params: IdParam,
  body: MemberChange,
  example: { role: 'viewer' },
  response: data(Member),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ actor, params, body, services }) => ({
    data: services.identity.team.change(actor, params.id, body),
  }),
})
