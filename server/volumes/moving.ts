import type { Clock } from '#server/kernel/clock'
import { conflict, notFound } from '#server/kernel/errors'
import type { MountedApp } from './mounts.ts'
import type { VolumeRepository } from './repository.ts'

export interface MovingOptions {
  clock: Clock
  repository: VolumeRepository
  ports: {
    app(id: string): MountedApp | undefined
    /** Ids of the apps of its project whose live release has a volume. */
    holders(volume: { id: string; project_id: string }): string[]
    /** Ids of the volumes that the live release of an app has. */
    held(app_id: string): string[]
    /** Throws 409 when the project may not have so many more volumes, or as much in them. */
    requireQuota(project_id: string, count: number): void
  }
  /** Volumes that no other app mounts. */
  ownedBy(app_id: string): string[]
}

/**
 * Volumes of an app that goes to another project. What is mounted is about the next release of an app: what runs now
 * may have another volume, and neither may leave the other behind in a project whose people cannot see it.
 */
export function createMoving({ clock, repository, ports, ownedBy }: MovingOptions) {
  return {
    /** Takes the volumes along; throws 409 where one cannot go or would stay. Part of the move. */
    moved(app_id: string): void {
      const app = ports.app(app_id)
      if (!app) throw notFound('app')
      const { project_id } = app
      const owned = new Set(ownedBy(app_id))
      let came = false
      for (const { volume_id } of repository.mountsOfApp(app_id)) {
        const volume = volume_id === null ? undefined : repository.find(volume_id)
        if (!volume || volume.project_id === project_id) continue
        if (!owned.has(volume.id))
          throw conflict(
            `The volume ${volume.name} is also mounted by other apps, which stay. Remove the mount before the app moves.`,
          )
        const [holder] = ports.holders(volume)
        if (holder !== undefined)
          throw conflict(
            `${ports.app(holder)?.name ?? 'Another app'} stays, and still runs on the volume ${volume.name}. Deploy it without that volume before the app moves.`,
          )
        if (repository.hasName(project_id, volume.name))
          throw conflict(`The other project has a volume named ${volume.name} already.`)
        repository.move(volume.id, project_id, clock.iso())
        came = true
      }
      // They are counted where they are now, with what they hold.
      if (came) ports.requireQuota(project_id, 0)
      const left = ports
        .held(app_id)
        .map((id) => repository.find(id))
        .find((volume) => volume && volume.project_id !== project_id)
      if (left)
        throw conflict(
          `The app still runs on the volume ${left.name}, which stays. Deploy it without that volume before it moves.`,
        )
    },
  }
}
