import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { NewVolume, Volume } from '#server/volumes/schema'

export default endpoint({
  summary: 'Create a volume',
  description:
    'Storage that outlives instances and deployments. Mount it with POST /api/apps/:id/mounts. With the access `single_writer` only one instance writes to it, so that deployments of the app that mounts it end the old instance first.',
  access: 'developer',
  scope: 'body',
  body: NewVolume,
  example: { name: 'uploads', size_bytes: 10_737_418_240 },
  status: 201,
  response: data(Volume),
  errors: ['CONFLICT', 'ENGINE_UNAVAILABLE'],
  handler: async ({ actor, project_id, body, services }) => ({
    data: await services.volumes.create(actor, project_id, body),
  }),
})
