import { Instance } from '#server/apps/instances-schema'
import { endpoint } from '#server/endpoint'
import { IdParam, list, pageOf, sortedPaging } from '#server/http/schemas'

export default endpoint({
  summary: 'List the instances of an app',
  description:
    'What runs now, as the engine says it: state, health, image and uptime of every container, those of a release that is being started included.',
  access: 'viewer',
  scope: { noun: 'app' },
  params: IdParam,
  query: sortedPaging(['process', 'state', 'restart_count', 'started_at'], 'By process.'),
  response: list(Instance),
  errors: ['ENGINE_UNAVAILABLE'],
  handler: async ({ params, query, services }) =>
    pageOf(await services.deployments.runtime.instances(params.id), query),
})
