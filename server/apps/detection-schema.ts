import * as v from 'valibot'
import { SuggestedVariables } from '#server/builds/schema'
import { AppName, Compose, ComposePath, configuration, GitUrl } from './configuration-schema.ts'

/** Body of `POST /api/apps/detect`: whoever means to make an app may send what they will make it with. */
export const DetectRequest = v.strictObject({
  project_id: v.optional(
    v.pipe(
      v.string(),
      v.maxLength(64),
      v.description('Project whose credentials may be used. Default: the project `default`.'),
    ),
  ),
  name: v.optional(v.pipe(AppName, v.description('Name that the app is to get; nothing depends on it.'))),
  git_url: v.optional(GitUrl),
  source: v.optional(
    v.pipe(
      v.picklist(['git', 'compose']),
      v.description('`compose` plans the compose file of the repository. Default: what the repository has.'),
    ),
  ),
  compose: v.optional(Compose),
  compose_path: v.optional(v.nullable(ComposePath)),
  ...configuration,
})
const KeyNotes = v.array(v.object({ path: v.string(), text: v.string() }))
const DetectedStack = v.object({
  services: v.pipe(
    v.array(
      v.object({
        name: v.string(),
        image: v.nullable(v.string()),
        build: v.pipe(v.nullable(v.string()), v.description('Folder that it is built from.')),
        public_port: v.pipe(v.nullable(v.number()), v.description('Port that gets a domain.')),
        replicas: v.number(),
        one_off: v.pipe(v.boolean(), v.description('Runs to its end; others wait for it.')),
        depends_on: v.pipe(v.array(v.string()), v.description('Services that start before it.')),
        volumes: v.array(v.string()),
      }),
    ),
    v.description('In the order in which they start.'),
  ),
  main: v.pipe(v.nullable(v.string()), v.description('Service that gets the name of the app.')),
  volumes: v.array(v.string()),
  left_out: v.pipe(v.array(v.string()), v.description('Services of profiles that are not active.')),
  variables: v.pipe(
    v.array(
      v.object({
        name: v.string(),
        required: v.pipe(v.boolean(), v.description('Whether the file cannot do without it.')),
        default: v.pipe(v.nullable(v.string()), v.description('Value that the file has for it.')),
      }),
    ),
    v.description('Variables that the file asks for.'),
  ),
  taken: v.pipe(KeyNotes, v.description('Keys of the file that are taken.')),
  ignored: v.pipe(KeyNotes, v.description('Keys that are not, and why.')),
})
export const DetectedPlan = v.pipe(
  v.object({
    stack: v.string(),
    framework: v.nullable(v.string()),
    version: v.nullable(v.string()),
    package_manager: v.nullable(v.string()),
    install_command: v.nullable(v.string()),
    build_command: v.nullable(v.string()),
    start_command: v.nullable(v.string()),
    release_command: v.nullable(v.string()),
    port: v.number(),
    health_check: v.object({ type: v.picklist(['http', 'tcp']), path: v.optional(v.string()) }),
    dockerfile: v.pipe(v.string(), v.description('Text of the Dockerfile that would be built.')),
    web: v.pipe(
      v.boolean(),
      v.description('Whether a process takes requests. A Procfile that names others only has none.'),
    ),
    processes: v.pipe(
      v.record(v.string(), v.string()),
      v.description('Commands of the processes that run beside it, by name.'),
    ),
    cron_jobs: v.array(
      v.object({
        schedule: v.string(),
        command: v.string(),
        name: v.optional(v.pipe(v.string(), v.description('Where the file gives it one.'))),
        timezone: v.optional(v.pipe(v.string(), v.description('Zone of the schedule; UTC when absent.'))),
      }),
    ),
    explanation: v.pipe(
      v.array(v.object({ field: v.string(), value: v.string(), source: v.string() })),
      v.description('Which value came from where.'),
    ),
    suggested_variables: v.optional(SuggestedVariables),
    compose: v.optional(
      v.pipe(DetectedStack, v.description('What a compose file describes; absent for other stacks.')),
    ),
  }),
  v.title('DetectedPlan'),
)
