import * as v from 'valibot'
import { EVENT_TYPES } from '#server/kernel/event-types'
import { pagingEntries, several, severalIds, sorting, Timestamp } from '#server/kernel/schemas'
import {
  AppName,
  BuildSettings,
  Compose,
  ComposePath,
  Dockerfile,
  GitUrl,
  HealthCheck,
  ImageReference,
  Limits,
  Process,
  configuration,
  placement,
} from './configuration-schema.ts'

export const AppStatus = v.pipe(
  v.picklist(['building', 'starting', 'running', 'stopping', 'stopped', 'failed', 'crashed', 'deleting']),
  v.description(
    '`building`: the first release is made. `starting`, `stopping`: as was asked for, until it is `running` or `stopped`. `failed`: nothing serves; `last_error` says why. `crashed`: nothing of it serves, and it is started again and again.',
  ),
)
export type AppStatus = v.InferOutput<typeof AppStatus>
export const AppSource = v.pipe(
  v.picklist(['git', 'image', 'dockerfile', 'compose', 'upload', 'template']),
  v.description(
    'What it is made of. `template`: a compose file that came with a template; it is changed and deployed like any other.',
  ),
)
export type AppSource = v.InferOutput<typeof AppSource>

/** Body of `POST /api/apps`. */
export const NewApp = v.strictObject({
  name: AppName,
  project_id: v.optional(
    v.pipe(
      v.string(),
      v.maxLength(64),
      v.description('Project to create it in. Default: the project `default`.'),
    ),
  ),
  source: v.optional(
    v.pipe(
      v.picklist(['git', 'image', 'dockerfile', 'compose', 'upload']),
      v.description(
        'Default: what the other fields say. `compose` with git_url takes the compose file of the repository.',
      ),
    ),
  ),
  git_url: v.optional(GitUrl),
  image: v.optional(ImageReference),
  dockerfile: v.optional(Dockerfile),
  compose: v.optional(Compose),
  compose_path: v.optional(v.nullable(ComposePath)),
  ...configuration,
  ...placement,
})
export type NewApp = v.InferOutput<typeof NewApp>

/** Body of `PUT /api/apps/:id`: only the fields that are given change. */
export const AppChange = v.strictObject({
  name: v.optional(AppName),
  git_url: v.optional(GitUrl),
  image: v.optional(ImageReference),
  dockerfile: v.optional(Dockerfile),
  compose: v.optional(Compose),
  compose_path: v.optional(v.nullable(ComposePath)),
  ...configuration,
  ...placement,
})
export type AppChange = v.InferOutput<typeof AppChange>

export const LatestDeployment = v.object({
  id: v.string(),
  number: v.number(),
  status: v.string(),
  created_at: Timestamp,
})

/** What `GET /api/apps/:id` shows. */
export const App = v.pipe(
  v.object({
    id: v.pipe(v.string(), v.examples(['app_0123456789abcdefghjk'])),
    name: v.string(),
    project_id: v.string(),
    preview_id: v.pipe(
      v.nullable(v.string()),
      v.description('Set for the app that runs a preview of a pull request.'),
    ),
    status: AppStatus,
    domain: v.pipe(
      v.string(),
      v.description('Host name that was assigned on creation; empty for an app without a web process.'),
      v.examples(['shop.localhost']),
    ),
    url: v.pipe(v.string(), v.description('Where the app answers.'), v.examples(['http://shop.localhost'])),
    source: AppSource,
    git_url: v.nullable(v.string()),
    branch: v.nullable(v.string()),
    image: v.nullable(v.string()),
    dockerfile: v.nullable(v.string()),
    compose: v.pipe(v.nullable(v.string()), v.description('Text of the compose file, where it is inline.')),
    compose_path: v.pipe(
      v.nullable(v.string()),
      v.description('Compose file of the repository; null for the usual names.'),
    ),
    base_directory: v.string(),
    build: BuildSettings,
    port: v.nullable(v.pipe(v.number(), v.description('As configured; null means detected.'))),
    health_check: HealthCheck,
    replicas: v.number(),
    limits: Limits,
    processes: v.record(v.string(), Process),
    auto_deploy: v.boolean(),
    watch_paths: v.array(v.string()),
    soak_seconds: v.number(),
    ssh_key_id: v.pipe(
      v.nullable(v.string()),
      v.description('SSH key that the repository is read with; null for the newest that fits the host.'),
    ),
    git_credential_id: v.pipe(
      v.nullable(v.string()),
      v.description('Token that the repository is read with; null for the newest that fits the host.'),
    ),
    node_id: v.nullable(v.string()),
    live_deployment_id: v.nullable(v.pipe(v.string(), v.description('Deployment whose release serves now.'))),
    last_error: v.pipe(
      v.nullable(v.string()),
      v.description('Why the app does not run, and what to do; null while it does.'),
    ),
    latest_deployment: v.nullable(LatestDeployment),
    needs_redeploy: v.pipe(
      v.boolean(),
      v.description('Whether the configuration or a variable has changed since the live release was made.'),
    ),
    changed_keys: v.pipe(
      v.array(v.string()),
      v.description('Fields that have changed since; a variable as `env.<KEY>`.'),
    ),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
  v.title('App'),
)
export type App = v.InferOutput<typeof App>

/** Answer of a start or a stop. */
export const AppAtWork = v.pipe(
  v.object({
    ...App.entries,
    job_id: v.pipe(
      v.string(),
      v.description('Job that does it; follow it with `GET /api/system/jobs/:id`.'),
      v.examples(['job_0123456789abcdefghjk']),
    ),
  }),
  v.title('AppAtWork'),
)

/** The five fields of the list. Source: spec.md section 2. */
export const AppSummary = v.pipe(
  v.object({
    id: v.string(),
    name: v.string(),
    status: AppStatus,
    domain: v.string(),
    created_at: Timestamp,
  }),
  v.title('AppSummary'),
)

export const AppQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['name', 'status', 'created_at']),
  id: v.optional(
    v.pipe(
      v.array(v.pipe(v.string(), v.maxLength(64))),
      v.maxLength(100),
      v.description('Only these apps, at most 100.'),
    ),
  ),
  project_id: severalIds('Only apps of this project.'),
  status: several(AppStatus),
  q: v.optional(v.pipe(v.string(), v.maxLength(100), v.description('Part of the name.'))),
})

export const DeleteAppQuery = v.strictObject({
  volumes: v.optional(
    v.pipe(
      v.boolean(),
      v.description(
        'Delete the volumes that only this app mounts as well, with what is in them. Default false.',
      ),
    ),
  ),
  skip_backup: v.optional(
    v.pipe(v.boolean(), v.description('Delete without a final backup. Default false.')),
  ),
})

export const AppEvent = v.pipe(
  v.object({
    id: v.pipe(v.number(), v.description('Cursor: grows with every event.')),
    type: v.pipe(v.string(), v.description('What happened.'), v.metadata({ enum: Object.keys(EVENT_TYPES) })),
    actor_id: v.nullable(v.string()),
    deployment_id: v.nullable(v.string()),
    payload: v.record(v.string(), v.unknown()),
    created_at: Timestamp,
  }),
  v.title('AppEvent'),
)

export const MoveRequest = v.strictObject({
  project_id: v.pipe(
    v.string(),
    v.maxLength(64),
    v.description('Project to move the app to; the caller must be its owner too.'),
  ),
})
