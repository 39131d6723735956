import { endpoint } from '#server/endpoint'
import { list } from '#server/http/schemas'
import { Volume, VolumeQuery } from '#server/volumes/schema'

export default endpoint({
  summary: 'List volumes',
  description: 'With what each holds, measured every 15 minutes, and the apps that mount it. Newest first.',
  access: 'viewer',
  query: VolumeQuery,
  response: list(Volume),
  handler: ({ actor, query, services }) => services.volumes.list(actor, query),
})
