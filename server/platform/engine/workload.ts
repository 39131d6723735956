import type { Duplex } from 'node:stream'

/** The fewest cores that the kernel takes: of less the engine makes an error, or no limit at all. */
export const LEAST_CPUS = 0.01

/** What a workload runs for. The kind is the label below which its containers keep the owner's id. */
export const OWNER_KINDS = ['app', 'database', 'service', 'preview', 'task'] as const
export type OwnerKind = (typeof OWNER_KINDS)[number]
export interface Owner {
  kind: OwnerKind
  id: string
}

/**
 * A volume by our id, a file that is written into the container before it starts, or a folder in memory. There
 * is no form for a path of the host or for a driver.
 */
export type Mount =
  | { kind: 'volume'; volume_id: string; path: string; read_only: boolean }
  | { kind: 'file'; path: string; content: string; mode: number }
  | { kind: 'memory'; path: string; size_bytes: number | null }

/** A port of the host that leads to one of the container; only from the range that the adapter was given. */
export interface PublishedPort {
  container_port: number
  host_port: number
  protocol: 'tcp' | 'udp'
}

/** How readiness is seen from outside; `none` means that a replica is ready once it stayed up for its grace. */
export type WorkloadProbe =
  | { type: 'http'; port: number; path: string; grace_s: number }
  | { type: 'tcp'; port: number; grace_s: number }
  | { type: 'none'; grace_s: number }

/** Where containers run: `local` is this server, anything else the id of a member of the cluster. */
export interface Placement {
  node: string
}
export const LOCAL = 'local'

/** Whether a new version starts beside the old one, or after it has ended. */
export type UpdateStrategy = 'start_first' | 'stop_first'

/** The process that takes requests; the containers of others carry their name. */
export const MAIN_PROCESS = 'web'

/**
 * What a container may do beyond an ordinary process, after everything was dropped: what the entrypoints of
 * common images need to give files to a user and become that user, and to listen below 1024. Left out of the
 * engine's own default: raw sockets, device nodes, chroot, file capabilities, audit records.
 */
export const CAPABILITIES = [
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'KILL',
  'NET_BIND_SERVICE',
  'SETGID',
  'SETUID',
] as const

/** What one container looks like, closed: security.md 2.9 says what may be in it. */
export interface ContainerSpec {
  owner: Owner
  project_id: string
  /** Names this immutable version of the owner's configuration; containers are named after it. */
  release_id: string
  /** Process of the release; left out for `web`. Each process has instances, a command and limits of its own. */
  process?: string
  image: string
  /** Replaces the image's command; an argument array. Undefined keeps the image's own. */
  command?: string[]
  /** Replaces the image's entrypoint; an argument array. Undefined keeps the image's own. */
  entrypoint?: string[]
  /** User inside the container; undefined keeps the image's own. */
  user?: string
  /** Folder in which the command runs; undefined keeps the image's own. */
  working_dir?: string
  /** Whether nothing may be written outside of mounts. */
  read_only?: boolean
  /** Runs `command` below `/bin/sh -c` *inside the container* when the user gave one line of shell. */
  shell_command?: string
  environment: Record<string, string>
  /**
   * Variables, in place of those of the same name, that say how an image fills its empty volume. A container that
   * was made with others is the same.
   */
  first_environment?: Record<string, string>
  mounts?: readonly Mount[]
  /** Folders that are volumes of the container's own, since the image lacks them: a folder cannot be moved then. */
  pins?: readonly string[]
  network: string
  /** Further networks that the containers reach others in; they have no further names there. */
  more_networks?: readonly string[]
  /**
   * A network over several servers, by the names that the containers have in their own one. Joined before they start; no
   * part of what tells a container from another one, since those that run join it later.
   */
  shared_network?: string
  /** Further DNS names of the containers inside their network, e.g. the app's name. Shared by all replicas. */
  aliases?: readonly string[]
  limits: { cpus: number; memory_bytes: number; pids: number }
  /** What it gets first when the machine is short of it. */
  reservations?: Reservations
  stop_grace_s: number
  /** Default: this server. */
  placement?: Placement
}
/** Cores and memory that the engine keeps for a container under contention; what is left out is not kept. */
export interface Reservations {
  cpus?: number
  memory_bytes?: number
}

/** N replicas of one container, and how a new version takes their place. */
export interface Workload extends ContainerSpec {
  /** Published ports belong to one container: such a workload has one replica and is updated stop-first. */
  ports?: readonly PublishedPort[]
  probe: WorkloadProbe
  placement: Placement
  replicas: number
  update: UpdateStrategy
}

/** A command beside the main process of a running instance. */
export interface ExecSpec {
  command: readonly string[]
  environment?: Record<string, string>
  /** User inside the container, by name or number; the image's own when it is left out. */
  user?: string
}
/**
 * A running command with its streams apart. The reader sets the pace: while nobody reads `stdout`, the command
 * is held, so that a dump of any size costs constant memory. End `stdin` to end the command's input.
 */
export interface ExecProcess {
  stdin: NodeJS.WritableStream & { destroy(error?: Error): unknown }
  stdout: NodeJS.ReadableStream & { destroy(error?: Error): unknown }
  /** Settles once the command has ended and `stdout` was read; rejects when the stream or the engine breaks. */
  done: Promise<ExecResult>
}
export interface ExecResult {
  exit_code: number
  /** The last 16 KiB of what it wrote to stderr. */
  stderr: string
}

export interface TerminalSize {
  cols: number
  rows: number
}
/** A shell with a terminal inside a running instance. Its command is fixed; its user is the image's own. */
export interface TerminalSpec extends TerminalSize {
  /** Id of the session; marks its processes, so that all of them can be ended. */
  session: string
  environment?: Record<string, string>
}
export interface TerminalProcess {
  /** What is typed and what is shown. The reader sets the pace; destroying it lets go of the shell. */
  stream: Duplex
  resize(size: TerminalSize): Promise<void>
  /** Settles once the stream has closed: the exit code, undefined when the container is gone. */
  done: Promise<number | undefined>
}

export interface VolumeInfo {
  /** Our id, which is the engine's name of it too. */
  id: string
  created_at: string
}
/** What a volume takes on the disk, and how many containers hold it. */
export interface VolumeUsage {
  used_bytes: number
  containers: number
}
