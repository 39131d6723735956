import { shellWord } from '#server/kernel/shell-word'

/**
 * A read-only view of a source folder, bounded, that detectors look at. Paths are relative with `/`, never
 * leave the folder.
 */
export interface SourceTree {
  /** All files (not folders), `.git` and `node_modules` left out, at most 20,000, sorted. */
  files(): readonly string[]
  has(path: string): boolean
  /**
   * Text of a file of at most 1 MiB; undefined when it is missing, larger, binary or a link out of the
   * folder.
   */
  read(path: string): string | undefined
  /** The same tree seen from a sub-folder. */
  sub(directory: string): SourceTree
}

/** What a user may set instead of what is detected. Source: App.build in api.md. */
export interface BuildOverrides {
  stack?: string
  install_command?: string
  build_command?: string
  start_command?: string
  release_command?: string
  dockerfile_path?: string
  port?: number
}

/**
 * What an app's settings override; build arguments are no part of the plan, and what is not set overrides
 * nothing.
 */
export function overridesOf(build: Record<string, unknown>, port: number | null | undefined): BuildOverrides {
  const { args: _args, ...commands } = build
  return Object.fromEntries(
    Object.entries({ ...commands, port }).filter(([, value]) => value !== null && value !== undefined),
  )
}

export interface HealthCheckPlan {
  type: 'http' | 'tcp'
  path?: string
}

/** Why a value is what it is: `{ field: 'version', value: '22', source: '.nvmrc' }`; shown to the user. */
export interface Explanation {
  field: string
  value: string
  source: string
}

/** What runs and how: known of the folder before there is a Dockerfile. */
export interface PlanFacts {
  /** Stack slug: `node`, `python`, `go`, `static`, `dockerfile`, … */
  stack: string
  /** Framework slug where known: `nextjs`, `django`, `spring-boot`, … */
  framework: string | null
  /** Language or runtime version that the image will have, e.g. `22`, `3.12`. */
  version: string | null
  package_manager: string | null
  install_command: string | null
  build_command: string | null
  start_command: string | null
  release_command: string | null
  /** TCP port that the app will listen on; `PORT` is set to it. */
  port: number
  health_check: HealthCheckPlan
}

/** A command on a schedule, as a file of the repository declares it. */
export interface CronJobPlan {
  schedule: string
  command: string
  /** Its name, where the file gives it one. */
  name?: string
  /** IANA name; UTC when absent. */
  timezone?: string
}

/** The whole answer of detection, plain data. Shape of `POST /api/apps/detect`. */
export interface BuildPlan extends PlanFacts {
  /** Whole text of the Dockerfile that will be built: generated, or the repository's own. */
  dockerfile: string
  /** Commands of processes beside the one that takes requests, by name. */
  processes: Record<string, string>
  /** Whether a process takes requests: a Procfile that names others only has none. */
  web: boolean
  /** Where `portreeve.json`, `portreeve.yaml` or `app.json` declared cron jobs. */
  cron_jobs: CronJobPlan[]
  explanation: Explanation[]
  /** What a compose file describes; absent for other stacks. */
  compose?: StackPlan
  /** What the repository's `.env.example` names; absent where there is none. */
  suggested_variables?: SuggestedVariable[]
}

/** A variable that the repository shows in its example of a `.env` file. */
export interface SuggestedVariable {
  key: string
  value: string
  comment: string | null
}

/** A compose file as it is shown before it is deployed. */
export interface StackPlan {
  services: {
    name: string
    image: string | null
    build: string | null
    public_port: number | null
    replicas: number
    one_off: boolean
    depends_on: string[]
    volumes: string[]
  }[]
  main: string | null
  volumes: string[]
  left_out: string[]
  variables: { name: string; required: boolean; default: string | null }[]
  taken: { path: string; text: string }[]
  ignored: { path: string; text: string }[]
}

/** Id of the secret mount whose lines set the secret build variables of a generated Dockerfile. */
export const SECRETS_FILE = 'portreeve-variables'
/** Build argument that differs when these variables do. */
export const SECRETS_ARGUMENT = 'PORTREEVE_BUILD_SECRETS'

/** The lines of `SECRETS_FILE`: each value as one shell word, whatever is in it. Keys are names of variables. */
export const renderSecretsFile = (values: Readonly<Record<string, string>>): string =>
  Object.entries(values)
    .map(([key, value]) => `export ${key}=${shellWord(value)}\n`)
    .join('')

/** No detector knows the folder. `looked_for` tells the user which files would have been recognised. */
export class DetectionError extends Error {
  readonly hint: string
  readonly looked_for: string[]
  constructor(message: string, hint: string, looked_for: string[]) {
    super(message)
    this.name = 'DetectionError'
    this.hint = hint
    this.looked_for = looked_for
  }
}

/** The hint of such an error with the files that would have been recognised, the nearest first. */
export const withLookedFor = ({ hint, looked_for }: DetectionError): string =>
  looked_for.length === 0 ? hint : `${hint} Looked for: ${looked_for.join(', ')}.`
