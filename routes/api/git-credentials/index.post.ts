import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { GitCredentialView, NewGitCredential } from '#server/git-credentials/schema'

/** Adds a token for one Git host. */
export default endpoint({
  summary: 'Add a token for a Git host',
  description:
    'Apps of the project clone from this host with the newest one, unless they name another in `git_credential_id`. It is told to this host only.',
  access: 'developer',
  scope: 'body',
  body: NewGitCredential,
  example: { name: 'GitHub, read only', host: 'github.com', token: 'github_pat_example' },
  status: 201,
  response: data(GitCredentialView),
  errors: ['NOT_FOUND', 'CONFLICT'],
  handler: ({ actor, project_id, body, services }) => ({
    data: services.git_credentials.add(actor, project_id, body),
  }),
})
