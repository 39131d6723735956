import type { Connection } from '../connection.ts'
import { allocatedBytes, unlinkedBytes } from '../unseen.ts'
import { isVolumeId } from '../volumes.ts'

interface SizedContainer {
  Id: string
  Mounts?: { Type: string; Name?: string; Source?: string; Destination: string }[] | null
  SizeRw?: number
  /** Files of the engine that it mounts into the container, which may write to them. */
  HostsPath?: string
  HostnamePath?: string
  ResolvConfPath?: string
  GraphDriver?: { Data?: { UpperDir?: string } | null } | null
}

/** Millions of files take a while; who waits is a watch that has nothing else to do. */
const LAYER_DEADLINE_MS = 120_000

/**
 * What a container wrote beside its volumes; undefined when it is gone. For each `VOLUME` of its
 * image the engine makes one that nobody asked for: it goes with the container and has no limit,
 * so it counts as part of the layer. So do
 * `/etc/hosts` and its like, which lie beside the layer on the disk of the engine.
 */
export async function layerBytes(
  connection: Connection,
  instance_id: string,
  signal?: AbortSignal,
): Promise<number | undefined> {
  const found = await connection.call<SizedContainer | undefined>({
    path: `/containers/${encodeURIComponent(instance_id)}/json`,
    query: { size: true },
    deadline_ms: LAYER_DEADLINE_MS,
    accept: [404],
    ...(signal ? { signal } : {}),
  })
  if (!found || !connection.local) return found?.SizeRw
  const { Id, SizeRw = 0, GraphDriver, Mounts, HostsPath, HostnamePath, ResolvConfPath } = found
  const volumes = (Mounts ?? []).flatMap(({ Type, Name, Source, Destination }) =>
    Type === 'volume' && Name && Source ? [{ name: Name, path: Destination, folder: Source }] : [],
  )
  const unasked = volumes.filter(({ name }) => !isVolumeId(name))
  const upper = GraphDriver?.Data?.UpperDir
  const beside = [
    ...unasked.map(({ folder }) => folder),
    ...[HostsPath, HostnamePath, ResolvConfPath].flatMap((path) => (path ? [path] : [])),
  ]
  const allocated = await allocatedBytes([...(upper ? [upper] : []), ...beside])
  const unlinked = await unlinkedBytes([{ id: Id, volumes }])
  return [
    Math.max(SizeRw, allocated.get(upper ?? '') ?? 0),
    unlinked.layers.get(Id),
    ...beside.map((path) => allocated.get(path)),
    ...unasked.map(({ name }) => unlinked.volumes.get(name)),
  ].reduce<number>((sum, bytes) => sum + (bytes ?? 0), 0)
}
