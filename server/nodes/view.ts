import { type Actor, isAdministrator } from '#server/kernel/access'
import type { NodeReading } from '#server/platform/cluster/cluster'
import type { EngineVersion, Instance } from '#server/platform/engine/engine'
import type { HostReading } from '#server/platform/host/reading'
import { type AddedRow, isAdded, type NodeRow } from './repository.ts'
import type { Node, NodeInstance } from './schema.ts'

/** What there is to say of this server and of what the engines run. */
export interface Facts {
  reading: HostReading
  engine: EngineVersion | undefined
  /** Undefined while the engine does not answer. */
  instances: Instance[] | undefined
}
const SHORT_ID = 12

const sumOf = (instances: readonly Instance[] | undefined, limit: 'cpus' | 'memory_bytes') =>
  instances ? instances.reduce((sum, { limits: given }) => sum + (given?.[limit] ?? 0), 0) : null

/** Whether an instance is on a server. */
export const isOn =
  (row: NodeRow) =>
  ({ node }: Pick<Instance, 'node'>): boolean =>
    isAdded(row) ? node === row.id : node === undefined

/** What of a server is known without asking it: of one that does not answer, what it had when it last did. */
const known = ({ reading }: AddedRow): NodeReading | undefined =>
  reading === null ? undefined : (JSON.parse(reading) as NodeReading)

const usedBy = (instances: readonly Instance[] | undefined) => ({
  instances: instances?.length ?? null,
  committed_cpus: sumOf(instances, 'cpus'),
  committed_memory_bytes: sumOf(instances, 'memory_bytes'),
})

function ownParts({ reading, engine }: Facts, instances: readonly Instance[] | undefined) {
  return {
    capacity: {
      cpus: engine?.cpus ?? 0,
      memory_bytes: reading.memory_total_bytes,
      disk_bytes: reading.disk_total_bytes,
    },
    use: {
      memory_bytes: reading.memory_used_bytes,
      disk_bytes: reading.disk_used_bytes,
      load_1m: reading.load_1m,
      ...usedBy(instances),
    },
    engine: { version: engine?.version ?? null, os: engine?.os ?? null, arch: engine?.arch ?? null },
  }
}

function addedParts(row: AddedRow, running: readonly Instance[] | undefined) {
  const reading = known(row)
  const answers = row.joined_at !== null && row.silent_since === null
  const { version = null, os = null, arch = null } = (answers && reading?.engine) || {}
  return {
    capacity: {
      cpus: reading?.cpus ?? 0,
      memory_bytes: reading?.memory_total_bytes ?? 0,
      disk_bytes: reading?.disk_total_bytes ?? 0,
    },
    use: {
      memory_bytes: reading?.memory_used_bytes ?? 0,
      disk_bytes: reading?.disk_used_bytes ?? 0,
      load_1m: reading?.load_1m ?? 0,
      ...usedBy(answers ? running : undefined),
    },
    engine: { version, os, arch },
  }
}

/** A server as a caller sees it. */
export function nodeView(actor: Actor, row: NodeRow, facts: Facts, address: string): Node {
  const running = facts.instances?.filter(({ state }) => state === 'running').filter(isOn(row))
  const added = isAdded(row) ? row : undefined
  return {
    id: row.id,
    name: row.name,
    address: added?.address ?? address,
    role: added ? 'worker' : 'manager',
    state: row.state,
    availability: row.availability,
    labels: JSON.parse(row.labels) as Record<string, string>,
    ssh:
      added && isAdministrator(actor)
        ? {
            port: added.ssh_port,
            user: added.ssh_user,
            ssh_key_id: added.ssh_key_id,
            host_key: added.host_key,
          }
        : null,
    last_error: row.last_error,
    ...(added ? addedParts(added, running) : ownParts(facts, running)),
    last_seen_at: row.last_seen_at,
    created_at: row.created_at,
    updated_at: row.updated_at,
  }
}

export const instanceView = ({
  id,
  owner,
  limits,
  started_at,
  ...rest
}: Instance): Omit<NodeInstance, 'owner_name'> => ({
  id: id.slice(0, SHORT_ID),
  project_id: rest.project_id,
  owner_kind: owner.kind,
  owner_id: owner.id,
  process: rest.process,
  index: rest.index,
  state: rest.state,
  restart_count: rest.restart_count,
  cpus: limits?.cpus ?? null,
  memory_bytes: limits?.memory_bytes ?? null,
  started_at: started_at ? new Date(started_at).toISOString() : null,
})
