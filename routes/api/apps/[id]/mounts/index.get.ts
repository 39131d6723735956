import { endpoint } from '#server/endpoint'
import { IdParam } from '#server/http/schemas'
import { data } from '#server/http/schemas'
import { Mount } from '#server/volumes/schema'
import * as v from 'valibot'

export default endpoint({
  summary: 'Mounts of an app',
  description:
    'What the next release has, ordered by path. Mounts belong to a release: a rollback brings those of its release back.',
  access: 'viewer',
  scope: { noun: 'app' },
  params: IdParam,
  response: data(v.array(Mount)),
  handler: async ({ actor, params, services }) => ({
    data: await services.volumes.mountsFor(actor, params.id),
  }),
})
