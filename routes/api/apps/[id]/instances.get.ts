import { Instance } from '#server/apps/instances-schema'
import { endpoint } from '#server/endpoint'
import { data, IdParam } from '#server/http/schemas'
import * as v from 'valibot'

export default endpoint({
  summary: 'List the instances of an app',
  description:
    'What runs now, as the engine says it: state, health, image and uptime of every container, those of a release that is being started included.',
  access: 'viewer',
  scope: { noun: 'app' },
  params: IdParam,
  response: data(v.array(Instance)),
  errors: ['ENGINE_UNAVAILABLE'],
  handler: async ({ params, services }) => ({
    data: await services.deployments.runtime.instances(params.id),
  }),
})
