import type { Connection } from './connection.ts'
import type { InTurn } from './turn.ts'
import { EngineError, type Labels } from './engine.ts'
import type { LabelScope } from './labels.ts'
import { allocatedBytes, type LookedAt, type Unlinked, unlinkedBytes } from './unseen.ts'
import type { ContainerSpec, VolumeInfo, VolumeUsage } from './workload.ts'

/** The engine walks the files of every volume. */
const USAGE_DEADLINE_MS = 600_000
const VOLUME_ID = /^vol_[a-z0-9]+$/
/** Whether a volume of the engine has a name that we give. */
export const isVolumeId = (name: string): boolean => VOLUME_ID.test(name)

interface RawVolume {
  Name: string
  CreatedAt?: string
  Labels: Record<string, string> | null
  Mountpoint?: string
  UsageData?: { Size: number; RefCount: number } | null
}

interface RawContainer {
  Id: string
  Mounts?: { Type: string; Name?: string; Destination: string }[] | null
}

/**
 * Volumes of the engine's own driver, named by our ids. Only what carries our mark counts: the engine makes an
 * empty volume for every name that it does not know, and such a one must never be taken for the data of an app.
 */
export function createVolumes(connection: Connection, scope: LabelScope, inTurn: InTurn) {
  const path = (id: string) => `/volumes/${encodeURIComponent(requireId(id))}`
  const inspect = (id: string) => connection.call<RawVolume | undefined>({ path: path(id), accept: [404] })

  async function find(id: string): Promise<VolumeInfo | undefined> {
    const raw = await inspect(id)
    return raw && scope.owns(raw.Labels) ? { id: raw.Name, created_at: raw.CreatedAt ?? '' } : undefined
  }

  /** What running containers of ours keep in volumes without a name; the engine does not see it. */
  async function unlinked(signal: AbortSignal | undefined): Promise<Unlinked['volumes']> {
    if (!connection.local) return new Map()
    const running = await connection.call<RawContainer[]>({
      path: '/containers/json',
      query: { filters: JSON.stringify({ label: scope.filter({}), status: ['running'] }) },
      signal,
      keep: (entry) => ({ Id: (entry as RawContainer).Id, Mounts: (entry as RawContainer).Mounts }),
    })
    const looked_at = running.map(({ Id, Mounts }): LookedAt => {
      const volumes = (Mounts ?? []).flatMap(({ Type, Name, Destination }) =>
        Type === 'volume' && Name ? [{ name: Name, path: Destination }] : [],
      )
      return { id: Id, volumes }
    })
    return (await unlinkedBytes(looked_at.filter(({ volumes }) => volumes.length > 0))).volumes
  }

  return {
    find,
    async ensure(id: string, labels: Labels): Promise<void> {
      // Creating a volume that exists answers the one that is there.
      const made = await connection.call<RawVolume>({
        method: 'POST',
        path: '/volumes/create',
        body: { Name: requireId(id), Driver: 'local', Labels: scope.stored(labels) },
      })
      if (!scope.owns(made.Labels))
        throw new EngineError(
          'conflict',
          `A volume named ${id} exists that Portreeve did not make.`,
          'Look at what is in it, then remove it.',
        )
    },
    async remove(id: string): Promise<void> {
      const raw = await inspect(id)
      if (!raw || !scope.owns(raw.Labels)) return
      await connection.call({ method: 'DELETE', path: path(id), accept: [404], deadline_ms: 60_000 })
    },
    async usage(signal?: AbortSignal): Promise<ReadonlyMap<string, VolumeUsage>> {
      const answer = await inTurn(() =>
        connection.call<{ Volumes?: RawVolume[] | null }>({
          path: '/system/df',
          query: { type: 'volume' },
          signal,
          keep: (entry, list) => (list === 'Volumes' ? entry : undefined),
          deadline_ms: USAGE_DEADLINE_MS,
        }),
      )
      const volumes = (answer.Volumes ?? []).filter(({ Labels }) => scope.owns(Labels))
      const folders = connection.local ? volumes.flatMap(({ Mountpoint }) => Mountpoint ?? []) : []
      const [allocated, held] = await Promise.all([allocatedBytes(folders), unlinked(signal)])
      return new Map(
        volumes.map(({ Name, Mountpoint, UsageData }) => {
          const named = Math.max(0, UsageData?.Size ?? 0, allocated.get(Mountpoint ?? '') ?? 0)
          const used_bytes = named + (held.get(Name) ?? 0)
          return [Name, { used_bytes, containers: Math.max(0, UsageData?.RefCount ?? 0) }]
        }),
      )
    },
    /** Throws where a volume of the container is gone: the engine would go on with an empty one. */
    async require({ mounts = [] }: ContainerSpec): Promise<void> {
      for (const mount of mounts)
        if (mount.kind === 'volume' && !(await find(mount.volume_id)))
          throw new EngineError(
            'volume_missing',
            `The volume ${mount.volume_id}, mounted at ${mount.path}, is no longer on the server.`,
            'Restore it from a backup, or remove its mount and deploy again. An empty one is not put in its place.',
          )
    },
  }
}
export type Volumes = ReturnType<typeof createVolumes>

function requireId(id: string): string {
  if (!isVolumeId(id)) throw new EngineError('not_found', 'There is no volume with that name.')
  return id
}
