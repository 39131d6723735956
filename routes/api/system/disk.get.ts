import { DiskUsage } from '#server/disk/schema'
import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'

export default endpoint({
  summary: 'What takes disk: images, build cache, volumes, logs, backups',
  description:
    'Measured now: the container engine walks its files, which takes seconds, more on a large disk. Numbers of the engine are about all that is on it, also what others made.',
  access: 'admin',
  response: data(DiskUsage),
  errors: ['ENGINE_UNAVAILABLE'],
  handler: async ({ services }) => ({ data: await services.disk.usage() }),
})
