import * as v from 'valibot'
import { EVENT_TYPES } from '#server/kernel/event-types'
import { BranchName } from '#server/platform/git/branch-name'
import { lineFilterEntries } from '#server/runtime-logs/schema'
import { pagingEntries, several, severalIds, sorting, Timestamp } from '#server/kernel/schemas'

/** No control characters: one line of text. */
const line = (max: number) =>
  v.pipe(
    v.string(),
    v.maxLength(max),
    v.regex(/^[^\u0000-\u001f\u007f]*$/, 'must be one line without control characters.'),
  )
const command = (text: string, example: string) =>
  v.pipe(
    v.string(),
    v.minLength(1),
    v.maxLength(4000),
    v.regex(/^[^\u0000-\u001f\u007f]*$/, 'must be one line without control characters.'),
    v.description(`${text} A line of shell, run inside the container only.`),
    v.examples([example]),
  )

/** Name of an app: a DNS label, since it becomes the first label of its domain. */
export const AppName = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(63),
  v.regex(
    /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/,
    'must be a DNS label: lower-case letters, digits and hyphens, not at the ends.',
  ),
  v.description('DNS label, unique on the installation.'),
  v.examples(['shop']),
)

export const AppStatus = v.pipe(
  v.picklist(['building', 'starting', 'running', 'stopping', 'stopped', 'failed', 'crashed', 'deleting']),
  v.description(
    '`building`: the first release is made. `starting`, `stopping`: as was asked for, until it is `running` or `stopped`. `failed`: nothing serves; `last_error` says why. `crashed`: nothing of it serves, and it is started again and again.',
  ),
)
export type AppStatus = v.InferOutput<typeof AppStatus>
export const AppSource = v.picklist(['git', 'image', 'dockerfile', 'compose', 'upload', 'template'])
export type AppSource = v.InferOutput<typeof AppSource>

/** A path inside the repository. */
const RepositoryPath = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(512),
  v.regex(/^(?!\/)(?!-)[A-Za-z0-9._@+/ ()[\]-]+$/, 'must be a relative path inside the repository.'),
  v.check((path) => !path.split('/').includes('..'), 'must not leave the repository.'),
)

export const BuildSettings = v.strictObject({
  stack: v.optional(
    v.nullable(
      v.pipe(
        v.string(),
        v.regex(/^[a-z][a-z0-9-]{0,31}$/, 'must be the name of a stack, such as node.'),
        v.description('Stack to use instead of the detected one.'),
        v.examples(['node']),
      ),
    ),
  ),
  install_command: v.optional(v.nullable(command('Installs the dependencies.', 'npm ci'))),
  build_command: v.optional(v.nullable(command('Builds the app.', 'npm run build'))),
  start_command: v.optional(v.nullable(command('Starts the app.', 'node server.js'))),
  release_command: v.optional(
    v.nullable(
      command(
        'Runs once in the new image before any traffic goes to it, e.g. migrations.',
        'npm run migrate',
      ),
    ),
  ),
  dockerfile_path: v.optional(
    v.nullable(
      v.pipe(
        RepositoryPath,
        v.description('Dockerfile of the repository to build.'),
        v.examples(['docker/Dockerfile']),
      ),
    ),
  ),
  args: v.optional(
    v.pipe(
      v.record(
        v.pipe(
          v.string(),
          v.regex(/^[A-Za-z_][A-Za-z0-9_]{0,254}$/, 'must be a variable name.'),
          v.regex(/^(?!BUILDKIT_)/i, 'must not begin with BUILDKIT_: these steer the builder.'),
        ),
        v.pipe(v.string(), v.maxLength(4096), v.regex(/^[^\u0000]*$/, 'must not hold NUL.')),
      ),
      v.description('Build arguments. They end up in the image: never put a secret here.'),
      v.examples([{ APP_ENV: 'production' }]),
    ),
  ),
})
export type BuildSettings = v.InferOutput<typeof BuildSettings>

export const HealthCheck = v.strictObject({
  type: v.optional(
    v.pipe(
      v.picklist(['http', 'tcp']),
      v.description(
        '`http` asks for a path, `tcp` only connects. Default: what is known of the framework, else `tcp`.',
      ),
    ),
  ),
  path: v.optional(
    v.pipe(
      v.string(),
      v.maxLength(1024),
      v.regex(/^\/[^\s\u0000-\u001f\u007f]*$/, 'must start with / and hold no spaces.'),
      v.description('Path that answers below 400 when the app is ready.'),
      v.examples(['/health']),
    ),
  ),
  interval_ms: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(100),
      v.maxValue(60_000),
      v.description('Time between probes. Default 250.'),
    ),
  ),
  timeout_ms: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(100),
      v.maxValue(60_000),
      v.description('Time for one answer. Default 5000.'),
    ),
  ),
  grace_s: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(1),
      v.maxValue(1800),
      v.description('Time that the app has to become ready. Default 60.'),
    ),
  ),
})
export type HealthCheck = v.InferOutput<typeof HealthCheck>

export const Limits = v.strictObject({
  cpus: v.optional(
    v.pipe(
      v.number(),
      v.minValue(0.01),
      v.maxValue(128),
      v.description('CPU cores, e.g. 0.5. Default: as many as the host has.'),
    ),
  ),
  memory_bytes: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(6 * 1024 * 1024),
      v.maxValue(1024 ** 4),
      v.description('Memory; more than this ends the process. Default 512 MiB.'),
    ),
  ),
})
export type Limits = v.InferOutput<typeof Limits>

const Process = v.strictObject({
  command: v.optional(
    command(
      'Starts the process. Default: what the Procfile says, else the command of the image.',
      'node worker.js',
    ),
  ),
  replicas: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(0),
      v.maxValue(100),
      v.description('Instances that run. Default 1; with 0 the process does not run.'),
    ),
  ),
  limits: v.optional(v.pipe(Limits, v.description('What one instance may use. Default: as the app.'))),
  grace_s: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(1),
      v.maxValue(600),
      v.description('Seconds that an instance must stay up to count as ready. Default 5.'),
    ),
  ),
})
export const Processes = v.pipe(
  v.record(
    v.pipe(
      v.string(),
      v.regex(
        /^[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?$/,
        'must be lower-case letters, digits and hyphens, not at the ends.',
      ),
    ),
    Process,
  ),
  v.check((all) => Object.keys(all).length <= 20, 'has at most 20 processes.'),
  v.check(
    ({ web }) => web === undefined || (web.replicas === 0 && Object.keys(web).length === 1),
    'web is described by the other fields of the app; only {"replicas": 0} may be said here, for an app without it.',
  ),
  v.description(
    'Processes beside `web`, which takes the requests, by name; each runs in the same release with a command of its own. Those of a Procfile run by themselves; what is said here goes first. `"web": {"replicas": 0}` makes an app without web, domain and port, such as a bot or a queue worker.',
  ),
  v.examples([{ worker: { command: 'node worker.js', replicas: 2 } }]),
)
export type Processes = v.InferOutput<typeof Processes>

const GitUrl = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(2048),
  v.description('Repository: https or ssh.'),
  v.examples(['https://git.example.com/team/shop.git']),
)
const Branch = v.pipe(
  BranchName,
  v.description('Branch to deploy. Default: the HEAD of the remote.'),
  v.examples(['main']),
)
const ImageReference = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(512),
  v.description('Image to run as it is. Its name, without tag and digest, has at most 255 characters.'),
  v.examples(['nginx:1.29']),
)
const Dockerfile = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(262_144),
  v.regex(/^[^\u0000]*$/, 'must not hold NUL.'),
  v.description('Text of a Dockerfile to build without any other file.'),
  v.examples(['FROM nginx:1.29']),
)
const Compose = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(262_144),
  v.regex(/^[^\u0000]*$/, 'must not hold NUL.'),
  v.description(
    'Text of a compose file (Compose Specification) without a repository. docs/compose.md lists what is taken.',
  ),
  v.examples(['services: { web: { image: "nginx:1.29", ports: ["80"] } }']),
)
const ComposePath = v.pipe(
  RepositoryPath,
  v.description(
    'Compose file of the repository, seen from base_directory. Default: compose.yaml or another usual name.',
  ),
  v.examples(['deploy/compose.yaml']),
)
const Port = v.pipe(
  v.number(),
  v.integer(),
  v.minValue(1),
  v.maxValue(65535),
  v.description('Port that the app listens on; `PORT` is set to it. Default: detected.'),
)
const WatchPaths = v.pipe(
  v.array(line(256)),
  v.maxLength(100),
  v.description('A push deploys only when it touches one of these paths (globs). Empty: every push.'),
)
const Soak = v.pipe(
  v.number(),
  v.integer(),
  v.minValue(0),
  v.maxValue(600),
  v.description('Seconds after the switch in which a crash gives traffic back to the previous release.'),
)

export const repositoryAccess = {
  ssh_key_id: v.optional(
    v.nullable(
      v.pipe(
        v.string(),
        v.maxLength(64),
        v.description(
          'SSH key of the project to read the repository with, such as its deploy key; tried when it is set. Default: the newest that fits the host.',
        ),
        v.examples(['ssh_0123456789abcdefghjk']),
      ),
    ),
  ),
  git_credential_id: v.optional(
    v.nullable(
      v.pipe(
        v.string(),
        v.maxLength(64),
        v.description(
          'Token of the project to read the repository with over https; tried when it is set. Default: the newest that fits the host.',
        ),
        v.examples(['git_0123456789abcdefghjk']),
      ),
    ),
  ),
}

const configuration = {
  branch: v.optional(v.nullable(Branch)),
  base_directory: v.optional(
    v.pipe(
      RepositoryPath,
      v.description('Folder of the repository that holds the app. Default `.`.'),
      v.examples(['apps/web']),
    ),
  ),
  build: v.optional(v.pipe(BuildSettings, v.description('What to do instead of what is detected.'))),
  port: v.optional(v.nullable(Port)),
  health_check: v.optional(v.pipe(HealthCheck, v.description('How readiness is found out.'))),
  replicas: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(1),
      v.maxValue(100),
      v.description('Instances that run. Default 1.'),
    ),
  ),
  limits: v.optional(v.pipe(Limits, v.description('What one instance may use.'))),
  processes: v.optional(Processes),
  auto_deploy: v.optional(
    v.pipe(v.boolean(), v.description('Deploy on push. Default true; a rollback turns it off.')),
  ),
  watch_paths: v.optional(WatchPaths),
  soak_seconds: v.optional(Soak),
  ...repositoryAccess,
}

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

/** Body of `POST /api/apps/detect`. */
export const DetectRequest = v.strictObject({
  project_id: v.optional(
    v.pipe(
      v.string(),
      v.maxLength(64),
      v.description('Project whose credentials may be used. Default: the project `default`.'),
    ),
  ),
  git_url: v.optional(GitUrl),
  branch: v.optional(Branch),
  base_directory: v.optional(RepositoryPath),
  source: v.optional(
    v.pipe(
      v.picklist(['git', 'compose']),
      v.description('`compose` plans the compose file of the repository. Default: what the repository has.'),
    ),
  ),
  compose: v.optional(Compose),
  compose_path: v.optional(v.nullable(ComposePath)),
  build: v.optional(BuildSettings),
  port: v.optional(Port),
  ...repositoryAccess,
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
    compose: v.optional(
      v.pipe(DetectedStack, v.description('What a compose file describes; absent for other stacks.')),
    ),
  }),
  v.title('DetectedPlan'),
)

export const Instance = v.pipe(
  v.object({
    id: v.string(),
    process: v.pipe(v.string(), v.description('`web` takes requests; any other runs beside it.')),
    index: v.number(),
    node: v.pipe(v.string(), v.description('Where it runs; `local` is this server.')),
    deployment_id: v.nullable(v.string()),
    state: v.string(),
    health: v.pipe(
      v.picklist(['healthy', 'starting', 'unhealthy', 'stopped']),
      v.description('`healthy` once it runs and has been probed.'),
    ),
    image: v.string(),
    address: v.nullable(v.string()),
    restart_count: v.number(),
    exit_code: v.nullable(v.number()),
    started_at: v.nullable(Timestamp),
    uptime_s: v.number(),
  }),
  v.title('Instance'),
)

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

export const ExecRequest = v.strictObject({
  command: v.pipe(
    v.union(
      [
        command('One line of shell.', 'npm run task'),
        v.pipe(
          v.array(v.pipe(v.string(), v.maxLength(4096), v.regex(/^[^\u0000]*$/))),
          v.minLength(1),
          v.maxLength(100),
        ),
      ],
      'must be a line of text or a list of arguments.',
    ),
    v.description('A line for the shell of the container, or a list of arguments that no shell sees.'),
    v.examples(['npm run task', ['node', '--version']]),
  ),
  timeout_s: v.optional(
    v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(600), v.description('Default 60.')),
    60,
  ),
})
export const ExecResult = v.pipe(
  v.object({
    exit_code: v.nullable(v.pipe(v.number(), v.description('Null when it was stopped for its time.'))),
    output: v.pipe(
      v.string(),
      v.description('Standard output and error in the order of their arrival, at most 1 MiB.'),
    ),
    truncated: v.boolean(),
    timed_out: v.boolean(),
    duration_ms: v.number(),
  }),
  v.title('ExecResult'),
)

export const LogQuery = v.strictObject({
  type: v.optional(
    v.pipe(v.picklist(['runtime', 'build', 'access']), v.description('Default `runtime`.')),
    'runtime',
  ),
  tail: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(1),
      v.maxValue(5000),
      v.description('Newest lines. Default 200.'),
    ),
    200,
  ),
  since: v.optional(v.pipe(v.string(), v.isoTimestamp(), v.description('Lines at or after this time.'))),
  until: v.optional(v.pipe(v.string(), v.isoTimestamp(), v.description('Lines before this time.'))),
  q: v.optional(v.pipe(v.string(), v.maxLength(200), v.description('Text that a line must contain.'))),
  ...lineFilterEntries,
})
export const MoveRequest = v.strictObject({
  project_id: v.pipe(
    v.string(),
    v.maxLength(64),
    v.description('Project to move the app to; the caller must be its owner too.'),
  ),
})
