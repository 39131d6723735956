import * as v from 'valibot'
import { Instance } from '#server/apps/instances-schema'
import { SECRET, Timestamp } from '#server/kernel/schemas'

export const ServiceState = v.pipe(
  v.picklist(['starting', 'running', 'crashed', 'stopped']),
  v.description(
    '`starting` until a deployment has made it; `stopped` by somebody, or because the app does not run; `crashed` while none of its instances runs.',
  ),
)
export const ServiceHealth = v.pipe(
  v.picklist(['healthy', 'unhealthy', 'starting', 'stopped']),
  v.description('`healthy` when every instance runs and the health check of the compose file succeeds.'),
)

/** One service of a compose app. */
export const Service = v.pipe(
  v.object({
    id: v.pipe(v.string(), v.examples(['svc_0123456789abcdefghjk'])),
    app_id: v.string(),
    project_id: v.string(),
    name: v.pipe(
      v.string(),
      v.description('Name in the compose file, and of the host in the app’s network.'),
    ),
    status: ServiceState,
    image: v.pipe(
      v.nullable(v.string()),
      v.description(
        'As the file names it; null for one that is built, and before the first deployment that is live.',
      ),
    ),
    public_port: v.pipe(
      v.nullable(v.number()),
      v.description('Port that has a domain; null for a private one.'),
    ),
    url: v.pipe(v.nullable(v.string()), v.description('Where it answers; null for a private service.')),
    internal_host: v.pipe(v.string(), v.description('Name by which other services of the app reach it.')),
    replicas: v.pipe(v.number(), v.description('Instances that it should have.')),
    stateful: v.pipe(
      v.boolean(),
      v.description('Whether it writes to a volume: then it ends before a new version of it starts.'),
    ),
    deployment_id: v.pipe(
      v.nullable(v.string()),
      v.description(
        'Deployment that made its containers; a later one that did not change it left them alone.',
      ),
    ),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
  v.title('Service'),
)
export type Service = v.InferOutput<typeof Service>

export const ServiceUrl = v.pipe(
  v.object({
    id: v.string(),
    url: v.nullable(v.string()),
    hostname: v.nullable(v.string()),
    public_port: v.pipe(
      v.nullable(v.number()),
      v.description('Port that has a domain; null for a private one.'),
    ),
    internal_host: v.pipe(v.string(), v.description('Name by which other services of the app reach it.')),
  }),
  v.title('ServiceUrl'),
)
export const ServiceStatus = v.pipe(
  v.object({
    id: v.string(),
    state: ServiceState,
    health: ServiceHealth,
    replicas: v.number(),
    running: v.pipe(v.number(), v.description('Instances that run.')),
    instances: v.array(Instance),
  }),
  v.title('ServiceStatus'),
)
export const ServiceCredentials = v.pipe(
  v.object({
    id: v.string(),
    credentials: v.pipe(
      v.array(
        v.object({
          name: v.pipe(v.string(), v.description('Variable of the app that the service uses.')),
          value: v.pipe(v.string(), SECRET),
          generated: v.pipe(v.boolean(), v.description('Whether the platform made it up.')),
        }),
      ),
      v.description('Variables by which others log in to the service.'),
    ),
  }),
  v.title('ServiceCredentials'),
)
