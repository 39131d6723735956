import type { Connection } from '../connection.ts'
import { allocatedBytes, unlinkedBytes } from '../unseen.ts'

interface SizedContainer {
  Id: string
  SizeRw?: number
  GraphDriver?: { Data?: { UpperDir?: string } | null } | null
}

/** Millions of files take a while; who waits is a watch that has nothing else to do. */
const LAYER_DEADLINE_MS = 120_000

/** What a container wrote beside its volumes; undefined when it is gone. */
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
  const { Id, SizeRw = 0, GraphDriver } = found
  const folder = GraphDriver?.Data?.UpperDir
  const allocated = folder ? (await allocatedBytes([folder])).get(folder) : 0
  const { layers } = await unlinkedBytes([{ id: Id, volumes: [] }])
  return Math.max(SizeRw, allocated ?? 0) + (layers.get(Id) ?? 0)
}
