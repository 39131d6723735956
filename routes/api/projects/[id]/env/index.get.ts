import { endpoint } from '#server/endpoint'
import { SharedVariable, VariableQuery } from '#server/env/schema'
import { IdParam, list } from '#server/http/schemas'

export default endpoint({
  summary: 'List the variables that a project shares',
  description:
    'In the order of their keys, with who changed them and when. Apps take one in by `${{ project.KEY }}` in a variable of their own. Secrets are masked.',
  access: 'viewer',
  scope: { noun: 'project' },
  params: IdParam,
  query: VariableQuery,
  response: list(SharedVariable),
  handler: ({ params, query, services }) => services.env.listShared(params.id, query),
})
