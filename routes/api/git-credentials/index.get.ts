import { endpoint } from '#server/endpoint'
import { list } from '#server/http/schemas'
import { GitCredentialQuery, GitCredentialView } from '#server/git-credentials/schema'

/** Tokens of the projects in which the caller is a developer, newest first. */
export default endpoint({
  summary: 'List tokens for private repositories',
  description: 'Masked: a token never leaves the server.',
  access: 'developer',
  effect: 'read',
  query: GitCredentialQuery,
  response: list(GitCredentialView),
  handler: ({ actor, query, services }) => services.git_credentials.list(actor, query),
})
