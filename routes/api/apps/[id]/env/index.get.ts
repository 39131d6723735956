import { endpoint } from '#server/endpoint'
import { IdParam, list } from '#server/http/schemas'
import { Variable, VariableQuery } from '#server/env/schema'

export default endpoint({
  summary: 'List the variables of an app',
  description:
    'In the order of their keys, with who changed them and when. Secrets are masked for everybody; references are shown as they were set.',
  access: 'viewer',
  scope: { noun: 'app' },
  params: IdParam,
  query: VariableQuery,
  response: list(Variable),
  handler: ({ params, query, services }) => services.env.list(params.id, query),
})
