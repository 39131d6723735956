import type { Connection } from '../connection.ts'
import type { VolumeMount } from './body.ts'
import { writtenVolumes } from './written-volumes.ts'

/**
 * Guards how the engine fills an empty volume when a container is created: it copies what the image has at that path,
 * file by file and along links, on the machine itself. Who has the volume already lays a link into it meanwhile, and the
 * files of the image are written wherever that leads.
 */
export function createFreshVolumes(connection: Connection) {
  const turns = new Map<string, Promise<unknown>>()

  return {
    /**
     * Creates with these mounts, of which those that others can write to are taken as they are. One after the other
     * for each volume: nobody else gets it while it is filled.
     */
    async within<T>(
      mounts: readonly VolumeMount[] | undefined,
      create: (mounts: VolumeMount[] | undefined) => Promise<T>,
      signal?: AbortSignal,
    ): Promise<T> {
      if (!mounts) return create(undefined)
      const names = [...new Set(mounts.flatMap(({ Source }) => Source ?? []))]
      const result = Promise.all(names.map((name) => turns.get(name))).then(async () => {
        const written = await writtenVolumes(connection, { names, all: true, signal })
        return create(
          mounts.map(
            (mount): VolumeMount =>
              written.has(mount.Source ?? '') ? { ...mount, VolumeOptions: { NoCopy: true } } : mount,
          ),
        )
      })
      const settled = result.then(
        () => {},
        () => {},
      )
      for (const name of names) turns.set(name, settled)
      try {
        return await result
      } finally {
        for (const name of names) if (turns.get(name) === settled) turns.delete(name)
      }
    },
  }
}
