/**
 * Servers beside the one of Portreeve, in our own words. Domains know this file only. `ready`
 * servers that were handed in by `use` are part of the engine: a workload whose placement names one
 * runs there.
 */
export interface Cluster {
  /**
   * Logs in and looks at the server, changing nothing. Throws ClusterError('host_key') with the key
   * that it shows where the target approves none, or another one.
   */
  inspect(target: NodeTarget, signal: AbortSignal): Promise<NodeFacts>
  /** Installs the container engine with the server's own packages where none answers. Idempotent. */
  installEngine(target: NodeTarget, signal: AbortSignal): Promise<void>
  /** Makes the server a member; the first one turns this server's engine into a manager. Idempotent. */
  join(node: Member, signal: AbortSignal): Promise<void>
  /**
   * Takes a server out: its containers of ours are removed, it leaves, and this server forgets it.
   * One that does not answer is forgotten all the same, and one that is given up also where its
   * engine does not, or refuses. With the last one nothing of a cluster is left on this server.
   */
  leave(node: Member, signal: AbortSignal, options?: { is_given_up?: boolean }): Promise<void>
  /**
   * Which members there are, in place of those named before; connections open when they are needed.
   * @param nodeOf what a member says to run of other releases than those on it is not believed.
   */
  use(members: readonly Member[], nodeOf?: NodeOf): void
  /** What a member has and uses now. Throws ClusterError('unreachable') within 10 s. */
  read(node_id: string, signal?: AbortSignal): Promise<NodeReading>
  close(): Promise<void>
}

/**
 * The server that a release of an app was placed on, null for this one and for a release of another app; undefined where
 * no such release is known.
 */
export type NodeOf = (release_id: string, app_id: string) => string | null | undefined

/** How a server is logged in to. */
export interface NodeTarget {
  /** An IP address or a name; the address that other servers of the cluster reach, too. */
  address: string
  port: number
  user: string
  /** OpenSSH or PEM, without a passphrase. */
  private_key: string
  /** Fingerprint of the server's key that was approved, as `ssh-keygen -lf` prints it: `SHA256:…`. */
  host_key?: string
}
export interface Member {
  /** `node_…` */
  id: string
  target: NodeTarget
}

/** What there is to know before a server joins. */
export interface NodeFacts {
  host_name: string
  host_key: string
  /** `PRETTY_NAME` of its os-release. */
  os: string
  /** `x86_64`, `aarch64`, as `uname -m` says. */
  machine: string
  cpus: number
  memory_bytes: number
  disk_free_bytes: number
  /** How far its clock is ahead of this server's. */
  clock_offset_ms: number
  /** Whether the login is root, or may become it without a password. */
  is_root: boolean
  /** Whether its package manager is one that `installEngine` can ask: apt. */
  can_install: boolean
  engine_version?: string
  /** Whether it is part of another cluster already. */
  in_cluster: boolean
  /** Whether a Portreeve runs there. */
  has_portreeve: boolean
  /** Ports that the cluster needs and somebody else has: 7946, 4789. */
  taken_ports: number[]
}
export interface NodeReading {
  cpus: number
  memory_total_bytes: number
  memory_used_bytes: number
  disk_total_bytes: number
  disk_used_bytes: number
  load_1m: number
  clock_offset_ms: number
  engine: { version: string; os: string; arch: string }
  /** False for one that the cluster has lost, or this server with it: nothing more can be started there. */
  in_cluster?: boolean
}

export type ClusterErrorCode = 'unreachable' | 'host_key' | 'denied' | 'not_root' | 'unsuited' | 'failed'

/** What went wrong with a server. `message` is fit for a user; `hint` says what to do. */
export class ClusterError extends Error {
  readonly code: ClusterErrorCode
  readonly hint?: string
  /** The key that the server shows, where `code` is `host_key`. */
  readonly shown?: string
  constructor(
    code: ClusterErrorCode,
    message: string,
    { hint, shown, ...options }: ErrorOptions & { hint?: string; shown?: string } = {},
  ) {
    super(message, options)
    this.name = 'ClusterError'
    this.code = code
    if (hint !== undefined) this.hint = hint
    if (shown !== undefined) this.shown = shown
  }
}
