import * as v from 'valibot'
import { LEAST_CPUS } from '#server/platform/engine/workload'
import { BranchName } from '#server/platform/git/branch-name'

/** No control characters: one line of text. */
const line = (max: number) =>
  v.pipe(
    v.string(),
    v.maxLength(max),
    v.regex(/^[^\u0000-\u001f\u007f]*$/, 'must be one line without control characters.'),
  )
export const command = (text: string, example: string) =>
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

/** A path inside the repository. */
export const RepositoryPath = v.pipe(
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
      v.minValue(LEAST_CPUS),
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

export const Process = v.strictObject({
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

export const GitUrl = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(2048),
  v.description('Repository: https or ssh.'),
  v.examples(['https://git.example.com/team/shop.git']),
)
export const Branch = v.pipe(
  BranchName,
  v.description('Branch to deploy. Default: the HEAD of the remote.'),
  v.examples(['main']),
)
export const ImageReference = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(512),
  v.description('Image to run as it is. Its name, without tag and digest, has at most 255 characters.'),
  v.examples(['nginx:1.29']),
)
export const Dockerfile = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(262_144),
  v.regex(/^[^\u0000]*$/, 'must not hold NUL.'),
  v.description('Text of a Dockerfile to build without any other file.'),
  v.examples(['FROM nginx:1.29']),
)
export const Compose = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxLength(262_144),
  v.regex(/^[^\u0000]*$/, 'must not hold NUL.'),
  v.description(
    'Text of a compose file (Compose Specification) without a repository. docs/compose.md lists what is taken.',
  ),
  v.examples(['services: { web: { image: "nginx:1.29", ports: ["80"] } }']),
)
export const ComposePath = v.pipe(
  RepositoryPath,
  v.description(
    'Compose file of the repository, seen from base_directory. Default: compose.yaml or another usual name.',
  ),
  v.examples(['deploy/compose.yaml']),
)
export const Port = v.pipe(
  v.number(),
  v.integer(),
  v.minValue(1),
  v.maxValue(65535),
  v.description('Port that the app listens on; `PORT` is set to it. Default: detected.'),
)
export const WatchPaths = v.pipe(
  v.array(line(256)),
  v.maxLength(100),
  v.description('A push deploys only when it touches one of these paths (globs). Empty: every push.'),
)
export const Soak = v.pipe(
  v.number(),
  v.integer(),
  v.minValue(0),
  v.maxValue(600),
  v.description('Seconds after the switch in which a crash gives traffic back to the previous release.'),
)

export const Replicas = v.pipe(
  v.number(),
  v.integer(),
  v.minValue(1),
  v.maxValue(100),
  v.description('Instances that run. Default 1.'),
)

/** The id of something else that the app uses, or null for none of its own. */
const reference = (text: string, example: string) =>
  v.optional(
    v.nullable(v.pipe(v.string(), v.nonEmpty(), v.maxLength(64), v.description(text), v.examples([example]))),
  )

export const repositoryAccess = {
  ssh_key_id: reference(
    'SSH key of the project to read the repository with, such as its deploy key; tried when it is set. Default: the newest that fits the host.',
    'ssh_0123456789abcdefghjk',
  ),
  git_credential_id: reference(
    'Token of the project to read the repository with over https; tried when it is set. Default: the newest that fits the host.',
    'git_0123456789abcdefghjk',
  ),
}

export const configuration = {
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
  replicas: v.optional(Replicas),
  limits: v.optional(v.pipe(Limits, v.description('What one instance may use.'))),
  processes: v.optional(Processes),
  auto_deploy: v.optional(
    v.pipe(v.boolean(), v.description('Deploy on push. Default true; a rollback turns it off.')),
  ),
  watch_paths: v.optional(WatchPaths),
  soak_seconds: v.optional(Soak),
  ...repositoryAccess,
}

/** Where an app may run. */
export const placement = {
  node_id: reference(
    'Server that alone may run the app, from its next deployment on. Default: any; the platform chooses.',
    'node_0123456789abcdefghjk',
  ),
}
