import type { CacheLimit, EngineDisk } from './disk-usage.ts'
import type {
  ContainerSpec,
  ExecProcess,
  ExecSpec,
  TerminalProcess,
  TerminalSpec,
  Owner,
  VolumeInfo,
  VolumeUsage,
  Workload,
} from './workload.ts'

/**
 * The container engine in Portreeve's own words. Domains know this file only; the engine's own
 * words stay in `docker.ts` and its neighbours. Every request to the engine is built from these
 * typed fields (security.md
 * 2.9): there is no field through which a privilege, a host path or a host namespace could be asked
 * for.
 */
export interface Engine {
  /** Facts about the engine; throws EngineError('unavailable') when it does not answer within 5 s. */
  version(signal?: AbortSignal): Promise<EngineVersion>

  /** Makes sure that a bridge network of that name exists, on a subnet of its own. Idempotent. */
  ensureNetwork(name: string, labels: Labels): Promise<void>
  /** Removes a network; a missing one is fine. */
  removeNetwork(name: string): Promise<void>

  /**
   * Builds an image from a folder. Rejects with EngineError('build_failed' | 'aborted' |
   * 'out_of_memory' | 'timeout' | …).
   */
  buildImage(spec: BuildSpec, signal: AbortSignal): Promise<Image>
  /**
   * Pulls an image and resolves its digest. An image that is here already and pinned by digest is
   * not pulled again.
   */
  pullImage(reference: string, options: PullOptions, signal: AbortSignal): Promise<Image>
  /** An image that is here, by id or reference; undefined when it is not. */
  findImage(reference: string): Promise<Image | undefined>
  /** Images that carry all of these labels. */
  listImages(labels: Labels): Promise<Image[]>
  /**
   * Removes an image by id or reference with its tags; a missing one is fine, one in use is left
   * alone (answers false).
   */
  removeImage(reference: string): Promise<boolean>

  /** Folder of the engine's data, on its machine. */
  dataDirectory(signal?: AbortSignal): Promise<string>
  /**
   * Bytes that data beside what serves may still take of its disk: a whole reserve stays beside
   * that of Portreeve. Undefined where nothing is known of it.
   */
  freeForCopies(signal?: AbortSignal): Promise<number | undefined>
  /** What takes the engine's disk. Walks its files: seconds, minutes on a large one; callers take turns. */
  diskUsage(signal?: AbortSignal): Promise<EngineDisk>
  /** When an image was last pulled or named here (ISO); undefined when it is gone. */
  imageNamedAt(id: string): Promise<string | undefined>
  /** Removes build cache that was not used for so long, or until no more than so much is left; answers bytes. */
  pruneBuildCache(limit: CacheLimit): Promise<number>

  /** Makes sure that a volume of that id exists. Idempotent; never touches what is in it. */
  ensureVolume(volume_id: string, labels: Labels): Promise<void>
  /** A volume of ours; undefined when it is gone, or when what has its name was not made by us. */
  findVolume(volume_id: string): Promise<VolumeInfo | undefined>
  /** Removes a volume with what is in it; a missing one is fine, one in use throws `conflict`. */
  removeVolume(volume_id: string): Promise<void>
  /** What each volume of this installation takes on the disk, by id. Walks the files: seconds for many. */
  volumeUsage(signal?: AbortSignal): Promise<ReadonlyMap<string, VolumeUsage>>

  /**
   * Makes sure that exactly `replicas` containers of a process of an immutable release exist and
   * run; adopts those that a crashed attempt left (names derive from release, process and index).
   * Does not wait for readiness: an instance that was started may have exited already. Throws
   * `start_failed` where the engine says that the command cannot be run, `file_refused` where the
   * image has a folder in the place of a file of ours, and `volume_missing` for a volume that is
   * not there: an empty one is never made in its place. Limits and reservations of those that run
   * are changed in place; `conflict` when one uses more memory than it may from now on and cannot
   * be replaced without the others noticing.
   */
  ensureRelease(workload: Workload, signal: AbortSignal): Promise<Instance[]>
  /**
   * Lets the engine restart the containers of all processes of a release after a crash or a reboot
   * (on after the soak; off while a rollout watches).
   */
  superviseRelease(release_id: string, supervised: boolean): Promise<void>
  /**
   * Holds every process of a release where it stands, so that nothing it writes changes; `false`
   * lets them go on. Connections stay open meanwhile. Idempotent; a missing release is fine.
   */
  pauseRelease(release_id: string, paused: boolean): Promise<void>
  /**
   * Stops (SIGTERM, then SIGKILL after `grace_s`) and removes every container of a release, or of
   * one of its processes; a missing one is fine.
   */
  removeRelease(release_id: string, grace_s: number, process?: string): Promise<void>
  /** Instances by label filter, running or not. */
  instances(filter: InstanceFilter): Promise<Instance[]>
  /** What of releases runs now and for whom, in one question however many there are. */
  runningInstances(): Promise<Pick<Instance, 'id' | 'owner'>[]>
  /**
   * Runs one command to its end in a fresh container of the release's image and environment, then
   * removes it.
   */
  runOnce(spec: RunOnceSpec, signal: AbortSignal): Promise<RunResult>
  /** Removes what `runOnce` of an earlier process left, or could not remove. */
  removeLeftRuns(): Promise<void>
  /**
   * Starts a command inside a running instance. The signal ends its streams and, where the engine
   * runs on this machine, the command.
   */
  exec(instance_id: string, spec: ExecSpec, signal: AbortSignal): Promise<ExecProcess>

  /** Opens a shell with a terminal inside a running instance. */
  openTerminal(instance_id: string, spec: TerminalSpec, signal: AbortSignal): Promise<TerminalProcess>
  /** Ends what a terminal's session started, also what runs on in the background. */
  hangUpTerminal(instance_id: string, session: string): Promise<void>

  /**
   * Log lines of one instance, oldest first; with `follow` until the signal aborts or the container
   * is removed.
   */
  logs(instance_id: string, options: LogOptions, signal?: AbortSignal): AsyncIterable<LogLine>
  /** One sample of resource use; undefined when the instance is not running. */
  stats(instance_id: string): Promise<InstanceStats | undefined>
  /**
   * Bytes that an instance wrote into its own container, without volumes and without its image, but
   * with what the image has volumes of its own for; undefined when it is gone. Walks the files:
   * seconds for many.
   */
  layerBytes(instance_id: string, signal?: AbortSignal): Promise<number | undefined>
  /**
   * Lifecycle events of Portreeve's own containers, from now until the signal aborts. Ends (throws)
   * when the engine goes away.
   */
  events(signal: AbortSignal): AsyncIterable<EngineEvent>
  /**
   * Removes every container, network or dangling leftover that carries these labels (used for
   * orphans and `delete`).
   */
  removeLabelled(labels: Labels): Promise<void>
  close(): Promise<void>
}

/**
 * Labels always live below `portreeve.`: `{ app: 'app_…' }` is stored as `portreeve.app=app_…`; the
 * adapter adds `portreeve.managed=true` and the installation's name.
 */
export type Labels = Record<string, string>

export interface EngineVersion {
  version: string
  api_version: string
  os: string
  arch: string
  cpus: number
  memory_bytes: number
  buildkit: boolean
  /** Whether what is mounted along a link to `/dev` takes the place of a container's devices there. */
  takes_links_for_devices?: true
  /** Why the last build used the classic builder, in a few words; undefined when it did not. */
  classic_because?: string
}

export interface Image {
  /** `sha256:…` image id, the immutable name that releases keep. */
  id: string
  tags: string[]
  /** `repo@sha256:…` when it came from a registry. */
  digest?: string
  size_bytes: number
  /** TCP ports that the image declares with EXPOSE, ascending. */
  exposed_ports: number[]
  /** Default command and entrypoint of the image. */
  command: string[]
  /** Instructions that run in every build on top of it (ONBUILD). */
  triggers: string[]
  /** The project of the app that it was built for, by whichever installation on this engine. */
  owner?: string
  created_at: string
}

export interface BuildSpec {
  /** Absolute path of the build context. `.dockerignore` in it is honoured; `.git` is never sent. */
  context: string
  /** Text of the Dockerfile. */
  dockerfile: string
  /** Image reference to tag, e.g. `portreeve/app_x:dep_y`. */
  tag: string
  labels: Labels
  build_args: Record<string, string>
  /**
   * Mounted as `/run/secrets/<id>` in steps that ask for it; never part of a layer, of history or
   * of the log. BuildKit only.
   */
  secrets: Record<string, string>
  /** Credentials for private base images. */
  registries?: NonNullable<PullOptions['auth']>[]
  target?: string
  no_cache: boolean
  /**
   * Builds of one scope share what they cache, layers and cache mounts alike; those of another
   * never see it.
   */
  cache_scope: string
  /**
   * Cache mounts of one scope are those of no other, whatever ids a Dockerfile gives them;
   * `cache_scope` where it is left out.
   */
  mount_scope?: string
  limits: { cpus: number; memory_bytes: number; timeout_ms: number }
  /** Whether the builder may use an image that it names; the build ends when it may not, for this reason if there is one. */
  mayUse?(image: string): boolean | EngineError
  onLog(line: BuildLogLine): void
}
export interface BuildLogLine {
  stream: 'stdout' | 'stderr' | 'system'
  text: string
}

export interface PullOptions {
  auth?: { username: string; password: string; server: string }
  /** Asks the registry without a login whatever is here: an image that is pinned may have come by one. */
  anonymously?: boolean
  onLog(line: BuildLogLine): void
}

export interface RunOnceSpec extends ContainerSpec {
  /** Distinguishes runs of one release: the container is `<release>-<purpose>`; a leftover is removed first. */
  purpose: string
  timeout_ms: number
  onLog(line: LogLine): void
  /** Called once the command runs: what fails after that may have been done. */
  onStarted?(): void
  /** How long an engine that does not answer is asked again how the command has ended; default: not at all. */
  patience_ms?: number
}
export interface RunResult {
  exit_code: number
  oom_killed: boolean
  timed_out: boolean
  duration_ms: number
}

export interface InstanceFilter {
  owner?: Owner
  release_id?: string
  project_id?: string
}
export interface Instance {
  /** Engine id of the container. */
  id: string
  owner: Owner
  release_id: string
  project_id: string
  /** Process of the release: `web`, or the name of another one. */
  process: string
  index: number
  /** Image id. */
  image: string
  /** The member of the cluster that it is on; left out on this server. */
  node?: string
  state: 'created' | 'running' | 'restarting' | 'exited' | 'dead' | 'paused'
  /** Address inside the project network; kept over restarts of the container and of the engine. */
  address?: string
  exit_code?: number
  oom_killed: boolean
  restart_count: number
  /** What the engine enforces now. */
  limits?: { cpus: number; memory_bytes: number }
  started_at?: string
  finished_at?: string
}
export interface LogOptions {
  tail?: number
  since?: string
  until?: string
  follow?: boolean
}
export interface LogLine {
  at: string
  stream: 'stdout' | 'stderr'
  text: string
}
export interface InstanceStats {
  at: string
  cpu_cores: number
  memory_bytes: number
  network_rx_bytes: number
  network_tx_bytes: number
}
export interface EngineEvent {
  kind: 'start' | 'die' | 'oom' | 'stop' | 'destroy'
  instance_id: string
  owner?: Owner
  release_id?: string
  /** Set for a command of `runOnce`, which is no instance of its release. */
  one_off?: true
  exit_code?: number
  at: string
}

export type EngineErrorCode =
  | 'unavailable'
  | 'not_found'
  | 'conflict'
  | 'build_failed'
  | 'out_of_memory'
  | 'timeout'
  | 'aborted'
  | 'disk_full'
  | 'disk_exceeded'
  | 'image_not_found'
  | 'image_denied'
  | 'image_refused'
  | 'start_failed'
  | 'volume_missing'
  | 'file_refused'
  | 'port_refused'
  | 'port_taken'
  | 'failed'

/** What went wrong at the engine. `message` is fit for a user; `hint` says what to do. */
export class EngineError extends Error {
  readonly code: EngineErrorCode
  readonly hint?: string
  /** The last lines that tell why, of what the failing command printed; empty where none did. */
  readonly log: readonly string[]
  /** Whether it is about the engine of a further server, and not about this one's. */
  readonly is_elsewhere: boolean
  constructor(
    code: EngineErrorCode,
    message: string,
    hint?: string,
    {
      log = [],
      is_elsewhere = false,
      ...options
    }: ErrorOptions & { log?: readonly string[]; is_elsewhere?: boolean } = {},
  ) {
    super(message, options)
    this.name = 'EngineError'
    this.code = code
    this.hint = hint
    this.log = log
    this.is_elsewhere = is_elsewhere
  }
}
