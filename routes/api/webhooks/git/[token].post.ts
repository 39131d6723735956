import * as v from 'valibot'
import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { InboundResult } from '#server/webhooks/schema'

/** Where forges send pushes and pull requests. */
export default endpoint({
  summary: 'Receive an event of a forge',
  description:
    'The signature over the raw body must fit the secret of the hook (401). A delivery that was received before is 409. A push to the branch of an app deploys it when `auto_deploy` is on, `watch_paths` match and the commit message has no marker such as `[skip ci]`; else the answer says why not.',
  access: 'public',
  params: v.object({ token: v.pipe(v.string(), v.description('Secret part of the address.')) }),
  upload: {
    media_types: ['application/json', 'application/x-www-form-urlencoded'],
    max_bytes: 26_214_400,
    any_type: true,
  },
  response: data(InboundResult),
  errors: ['UNAUTHORIZED', 'NOT_FOUND', 'CONFLICT', 'RATE_LIMITED'],
  handler: async ({ params, upload, header, services }) => ({
    data: await services.webhooks.receive(params.token, upload.stream, header),
  }),
})
