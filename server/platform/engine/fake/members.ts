import { EngineError, type Instance } from '../engine.ts'
import { type ContainerSpec, LOCAL } from '../workload.ts'
import type { FakeInstance } from './instance.ts'

/**
 * Which pretended members of a cluster answer. One that does not keeps what it runs: it is shown
 * as ended, until the member is back.
 */
export function createFakeMembers() {
  const silent = new Set<string>()
  /** What was removed while its member did not answer, so that it is there again when the member is. */
  const forgotten = new Set<string>()
  const isSilent = ({ record }: Pick<FakeInstance, 'record'>) =>
    record.node !== undefined && silent.has(record.node)
  return {
    setSilent(node: string, is_silent: boolean): void {
      if (is_silent) silent.add(node)
      else {
        silent.delete(node)
        forgotten.clear()
      }
    },
    isSilent,
    /** Throws where a workload is to go to a member that does not answer. */
    require({ placement }: Pick<ContainerSpec, 'placement'>): void {
      const node = placement?.node ?? LOCAL
      if (silent.has(node))
        throw new EngineError(
          'unavailable',
          'The server that this runs on does not answer.',
          'Try again once it does.',
          { is_elsewhere: true },
        )
    },
    forget: (id: string) => void forgotten.add(id),
    /** An instance as the engine knows it; undefined for one that was removed meanwhile. */
    seen(instance: FakeInstance): Instance | undefined {
      const { record } = instance
      if (!isSilent(instance)) return { ...record }
      if (forgotten.has(record.id)) return undefined
      const { address: _address, ...rest } = record
      return { ...rest, state: 'exited' }
    },
  }
}
export type FakeMembers = ReturnType<typeof createFakeMembers>
