import { endpoint } from '#server/endpoint'
import { data, Deleted, deleted, IdParam } from '#server/http/schemas'

/** Deletes a token. */
export default endpoint({
  summary: 'Delete a token',
  description:
    'Forgets the token. Refused while an app names it in `git_credential_id`. Other apps whose repositories need it fail at their next clone and say so; what runs goes on.',
  access: 'developer',
  scope: { noun: 'git_credential' },
  params: IdParam,
  response: data(Deleted),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler({ actor, params, services }) {
    services.git_credentials.remove(actor, params.id)
    return deleted(params.id)
  },
})
