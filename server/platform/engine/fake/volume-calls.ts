import { type Engine, EngineError } from '../engine.ts'
import type { FakeInstances } from './instances.ts'
import type { FakeVolumes } from './volumes.ts'

/** The fake engine's volumes as the engine's own calls. */
export function volumeCalls({
  called,
  volumes,
  instances,
}: {
  called(method: keyof Engine, ...args: unknown[]): void
  volumes: FakeVolumes
  instances: FakeInstances
}): Pick<Engine, 'ensureVolume' | 'findVolume' | 'removeVolume' | 'volumeUsage'> {
  const holders = (id: string) =>
    instances
      .all()
      .filter(({ spec }) => spec.mounts?.some((mount) => mount.kind === 'volume' && mount.volume_id === id))
      .length
  return {
    async ensureVolume(id, labels) {
      called('ensureVolume', id, labels)
      volumes.ensure(id)
    },
    async findVolume(id) {
      called('findVolume', id)
      return volumes.find(id)
    },
    async removeVolume(id) {
      called('removeVolume', id)
      if (holders(id) > 0) throw new EngineError('conflict', 'A container uses the volume.')
      volumes.lose(id)
    },
    async volumeUsage() {
      called('volumeUsage')
      return new Map(
        volumes.ids().map((id) => [id, { used_bytes: volumes.bytesOf(id), containers: holders(id) }]),
      )
    },
  }
}
