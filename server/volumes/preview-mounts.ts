import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { newId } from '#server/kernel/ids'
import { isWithin } from '#server/kernel/mount-path'
import type { Secrets } from '#server/kernel/secrets'
import { contentContext, type MountedApp } from './mounts.ts'
import type { MountRow, VolumeRepository, VolumeRow } from './repository.ts'

interface PreviewMountOptions {
  db: Db
  clock: Clock
  secrets: Secrets
  repository: VolumeRepository
  /** A volume of the project of a preview, in the current transaction; empty, and still to be made. */
  made(app: MountedApp, source: VolumeRow): VolumeRow
  make(row: VolumeRow): Promise<void>
  /** Begins the deletion of a volume that nothing mounts any more; it ends once nothing runs with it. */
  drop(volume_id: string): void
}

/** Mounts that a user set; those of a compose file belong to the file. */
const isPlain = ({ path }: MountRow): boolean => path.startsWith('/')

/** What previews mount: volumes of their own, and the files of their app. */
export function createPreviewMounts(options: PreviewMountOptions) {
  const { db, clock, secrets, repository, made, make, drop } = options
  const textOf = ({ id, content }: MountRow): string => secrets.open(content!, contentContext(id))

  function addVolumes(app: MountedApp, desired: readonly MountRow[]): void {
    const own = repository.mountsOfApp(app.id).filter(isPlain)
    const copies = new Map<string, string>()
    for (const { path, volume_id } of desired) {
      const known = own.find((mount) => mount.path === path)?.volume_id
      if (known) copies.set(volume_id!, known)
    }
    for (const source of desired) {
      if (own.some(({ path }) => isWithin(path, source.path) || isWithin(source.path, path))) continue
      const volume = copies.get(source.volume_id!) ?? made(app, repository.find(source.volume_id!)!).id
      copies.set(source.volume_id!, volume)
      const row = { ...source, id: newId('mnt'), app_id: app.id, volume_id: volume, created_at: clock.iso() }
      repository.insertMount(row)
    }
  }
  /** Takes the volumes of a preview away from where a file is to be. */
  function clearWay(own: readonly MountRow[], expected: readonly MountRow[]): void {
    const overlaps = (one: string, other: string) => isWithin(one, other) || isWithin(other, one)
    for (const { id, path, volume_id } of own) {
      if (volume_id === null || !expected.some((file) => overlaps(file.path, path))) continue
      repository.deleteMount(id)
      if (repository.mountsOfVolumes([volume_id]).length === 0) drop(volume_id)
    }
  }
  /** Mounts are made and removed, never changed: a file with another text is another mount. */
  function setFiles(app: MountedApp, wanted: readonly MountRow[]): void {
    const own = repository.mountsOfApp(app.id).filter(isPlain)
    const is_same = (mount: MountRow, source: MountRow) =>
      mount.path === source.path && mount.mode === source.mode && textOf(mount) === textOf(source)
    const files = own.filter(({ content }) => content !== null)
    const left = files.filter((mount) => wanted.some((source) => is_same(mount, source)))
    for (const mount of files) if (!left.includes(mount)) repository.deleteMount(mount.id)
    clearWay(own, wanted)
    for (const source of wanted) {
      if (left.some(({ path }) => path === source.path)) continue
      const id = newId('mnt')
      const content = secrets.seal(textOf(source), contentContext(id))
      repository.insertMount({ ...source, id, app_id: app.id, content, created_at: clock.iso() })
    }
  }

  return {
    /** Whether an app mounts something that its previews need as well. */
    hasPlain: (app_id: string): boolean => repository.mountsOfApp(app_id).some(isPlain),
    /**
     * Brings the mounts of a preview to those of its app: an empty volume of its own for each of the app's, which
     * it keeps for as long as it is there, and the app's inline files, unless the preview may see no secrets.
     * Throws SecretUnreadableError.
     */
    async followMounts(parent_id: string, app: MountedApp, { files }: { files: boolean }): Promise<void> {
      db.tx(() => {
        const wanted = repository.mountsOfApp(parent_id).filter(isPlain)
        setFiles(app, files ? wanted.filter(({ content }) => content !== null) : [])
        addVolumes(
          app,
          wanted.filter(({ volume_id }) => volume_id !== null),
        )
      })
      for (const { volume_id } of repository.mountsOfApp(app.id)) {
        const row = volume_id === null ? undefined : repository.find(volume_id)
        if (row?.status === 'creating') await make(row)
      }
    },
  }
}
