import { EngineError } from '../engine.ts'
import type { ContainerSpec, VolumeInfo } from '../workload.ts'

/** The pretended volumes: names without content. */
export function createFakeVolumes() {
  const known = new Map<string, VolumeInfo>()
  const held = new Map<string, number>()
  return {
    ensure(id: string): void {
      if (!known.has(id)) known.set(id, { id, created_at: new Date().toISOString() })
    },
    find: (id: string) => known.get(id),
    lose: (id: string) => void known.delete(id),
    ids: () => [...known.keys()],
    /** Bytes that a test put there; a small volume by default. */
    fill: (id: string, bytes: number) => void held.set(id, bytes),
    bytesOf: (id: string) => held.get(id) ?? 4096,
    require({ mounts = [] }: ContainerSpec): void {
      for (const mount of mounts)
        if (mount.kind === 'volume' && !known.has(mount.volume_id))
          throw new EngineError(
            'volume_missing',
            `The volume ${mount.volume_id}, mounted at ${mount.path}, is no longer on the server.`,
            'Restore it from a backup, or remove its mount and deploy again.',
          )
    },
  }
}
export type FakeVolumes = ReturnType<typeof createFakeVolumes>
