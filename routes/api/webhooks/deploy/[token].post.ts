import * as v from 'valibot'
import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { DeployHookQuery, InboundResult } from '#server/webhooks/schema'

/** A secret address that deploys an app, for pipelines and image registries. */
export default endpoint({
  summary: 'Deploy through a secret address',
  description: 'Any body is taken and ignored. `branch` and `commit` choose what is deployed.',
  access: 'public',
  params: v.object({ token: v.pipe(v.string(), v.description('Secret part of the address.')) }),
  query: DeployHookQuery,
  upload: { media_types: ['application/json'], max_bytes: 1_048_576, any_type: true },
  response: data(InboundResult),
  errors: ['NOT_FOUND', 'CONFLICT', 'RATE_LIMITED'],
  handler: async ({ params, query, upload, services }) => ({
    data: await services.webhooks.deploy(params.token, upload.stream, query),
  }),
})
