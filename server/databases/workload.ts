import { networkOf } from '#server/platform/engine/network-name'
import type { Mount, PublishedPort, Workload } from '#server/platform/engine/workload'
import type { Credentials, DatabaseEngine } from './engine.ts'

/** One server of a database: the live one, or a spare that is being filled. */
export interface ServerSpec {
  database_id: string
  project_id: string
  /** Set for a database of a preview, which lives in the network of that. */
  preview_id?: string | null
  volume_id: string
  image_id: string
  engine: DatabaseEngine
  version: string
  credentials: Credentials
  limits: { cpus: number; memory_bytes: number }
  /** Name inside the project's network; a spare has none, so that no app reaches it. */
  alias?: string
  public_port?: number
  /** Whether finished pieces of its log wait to be taken to a destination. */
  keeps_log?: boolean
  /** Arguments in place of the engine's own. */
  command?: readonly string[]
}

/** A spare is a server without a name and without a port. Its volume, `vol_…`, names it. */
export type SpareSpec = Omit<ServerSpec, 'alias' | 'public_port' | 'keeps_log' | 'command'>

/** Servers fork a process or a thread a client. */
const PIDS = 4096
/** Time to write what is in memory to the disk. */
export const STOP_GRACE_S = 60
/** A server that recovers after a crash answers after it has read its log. */
export const READY_LIMIT_MS = 300_000

/** Two labels more than an app's name can have, so that no app ever takes it over. */
export const hostOf = (name: string) => `${name}.db.internal`

/** Whether a server speaks TLS from files that must be put beside its data. */
export const tlsFilesOf = ({ engine, public_port, command }: ServerSpec) =>
  public_port === undefined || command ? undefined : engine.tls?.files

/**
 * A database as a workload: one replica, updated stop-first, since only one server may hold the data. The
 * volume names it, so that a spare that takes the place of the old one is adopted.
 */
export function workloadOf(spec: ServerSpec): Workload {
  const { engine, public_port } = spec
  const kept = spec.keeps_log ? (engine.point_in_time?.keep_log ?? []) : []
  const own = engine.command?.(tlsFilesOf(spec) !== undefined)
  const command = spec.command ?? (own && [...own, ...kept])
  const mounts: Mount[] = [
    { kind: 'volume', volume_id: spec.volume_id, path: engine.volume_path, read_only: false },
  ]
  const ports: PublishedPort[] =
    public_port === undefined
      ? []
      : [{ container_port: engine.tls?.port ?? engine.port, host_port: public_port, protocol: 'tcp' }]
  return {
    owner: { kind: 'database', id: spec.database_id },
    project_id: spec.project_id,
    release_id: spec.volume_id,
    image: spec.image_id,
    ...(command && command.length > 0 ? { command: [...command] } : {}),
    environment: engine.environment(spec.credentials),
    ...(engine.first_environment ? { first_environment: engine.first_environment(spec.version) } : {}),
    mounts,
    ports,
    network: networkOf(spec),
    ...(spec.alias === undefined ? {} : { aliases: [spec.alias] }),
    limits: { ...spec.limits, pids: PIDS },
    stop_grace_s: STOP_GRACE_S,
    probe: { type: 'tcp', port: engine.port, grace_s: READY_LIMIT_MS / 1000 },
    placement: { node: 'local' },
    replicas: 1,
    update: 'stop_first',
  }
}
