import { PruneRequest, PruneResult } from '#server/disk/schema'
import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'

export default endpoint({
  summary: 'Free disk: unused images, build cache, old logs; dry_run first',
  description:
    'With `dry_run` it tells what would go. Stays: what containers use, images of releases that can be rolled back to and of databases, images that nothing could bring back, what was pulled within the last hour, and every volume. The clock does the same each hour by the limits of the settings.',
  access: 'admin',
  body: PruneRequest,
  example: { dry_run: true, targets: ['images', 'build_cache'] },
  response: data(PruneResult),
  errors: ['ENGINE_UNAVAILABLE', 'CONFLICT'],
  handler: async ({ body, actor, services }) => ({ data: await services.disk.prune(actor, body) }),
})
