import type { FeatureNote } from './feature.ts'
import type { VariableUse } from './interpolate.ts'

/** A compose file as the platform runs it: everything resolved, nothing of the file's own words left. */
export interface ComposePlan {
  /** Services of active profiles, each after those that it depends on. */
  services: ComposeService[]
  /** Named volumes that services mount, as the file calls them; sorted. */
  volumes: string[]
  /** Names of services whose profiles are not active. */
  left_out: string[]
  /** Variables that the file asks for, whether they are set or not. */
  variables: VariableUse[]
  /** Keys of the file that are taken, and those that are not, each with a sentence. */
  taken: FeatureNote[]
  ignored: FeatureNote[]
  /** Of what is taken, what nobody can see in the file. */
  surprising: FeatureNote[]
}

export interface ComposeService {
  /** Name in the file, and of the host in the app's network. */
  name: string
  /** Image to run; what is built is named by it at most. Null where only `build` says what runs. */
  image: string | null
  build: ComposeBuild | null
  /** Argument arrays; null keeps what the image says. */
  entrypoint: string[] | null
  command: string[] | null
  environment: Record<string, string>
  user: string | null
  working_dir: string | null
  read_only: boolean
  mounts: ComposeMount[]
  /** TCP ports that other services or the edge use. */
  ports: number[]
  /** Port that gets a domain; null for a service that only others of the app reach. */
  public_port: number | null
  /** Path that is probed over HTTP, where the file says so. */
  health_path: string | null
  /** Further names in the app's network. */
  aliases: string[]
  depends_on: ComposeDependency[]
  /** `image` keeps the check of the image. */
  health_check: ComposeHealthCheck | 'none' | 'image'
  replicas: number
  limits: { cpus?: number; memory_bytes?: number; pids?: number }
  stop_grace_s: number
  /** Whether it ends by itself: nothing starts it again, and others may wait until it has done so successfully. */
  one_off: boolean
}

export interface ComposeBuild {
  /** Folder of the repository. */
  context: string
  /** Path below the context; null with `inline`. */
  dockerfile: string | null
  inline: string | null
  args: Record<string, string>
  target: string | null
}

export type ComposeMount =
  | { kind: 'volume'; volume: string; path: string; read_only: boolean }
  | { kind: 'tmpfs'; path: string; size_bytes: number | null }
  | { kind: 'file'; path: string; content: string; mode: number }

export const CONDITIONS = ['service_started', 'service_healthy', 'service_completed_successfully'] as const
export interface ComposeDependency {
  service: string
  condition: (typeof CONDITIONS)[number]
}

export interface ComposeHealthCheck {
  /** Argument array, run inside the container. */
  command: string[]
  interval_ms: number
  timeout_ms: number
  retries: number
  start_period_ms: number
}

/** Files of the repository that a compose file may name: paths with `/`, bounded, never out of the checkout. */
export interface ComposeFiles {
  /** Their names, sorted. */
  files(): readonly string[]
  read(path: string): string | undefined
}
