import * as v from 'valibot'
import type { DeploymentsDomain } from '#server/deployments/contract'
import { PLATFORM } from '#server/kernel/access'
import { conflict, invalid } from '#server/kernel/errors'
import { Fatal } from '#server/kernel/jobs/definition'
import { NewVolume } from '#server/volumes/schema'
import type { Volumes } from '#server/volumes/service'
import type { BackupTarget, RestoreRequest } from '../target.ts'
import type { VolumeFiles, VolumePlace } from '../volume-files.ts'

export type VolumePort = Pick<
  Volumes,
  | 'find'
  | 'dataOf'
  | 'clear'
  | 'replaceData'
  | 'returnData'
  | 'forgetData'
  | 'createForRestore'
  | 'dropUnfilled'
  | 'removeData'
  | 'spareData'
  | 'isNameTaken'
>
export type HolderPort = DeploymentsDomain['holders']

/** The data of a restore or a trial are named after it, so that a step that runs again finds them. */
export const dataFor = (work_id: string) => `vol_${work_id.split('_').at(-1)}`

/** Lets apps stand still while their volumes are read. They go on whatever happens to the reader. */
export async function* whilePaused(
  holders: HolderPort,
  app_ids: readonly string[],
  bytes: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const standing: string[] = []
  try {
    for (const id of app_ids) {
      standing.push(id)
      await holders.standStill(id)
    }
    yield* bytes
  } finally {
    for (const id of standing) await holders.goOn(id)
  }
}

/** Whose data are written to, and what is called after the work. */
type Place = Pick<VolumePlace, 'data_id' | 'work_id'>
/**
 * Makes an empty place for data. What an attempt before left running there ends first, since the
 * engine removes no volume that something holds.
 */
export async function emptyPlace(
  volumes: Pick<VolumePort, 'clear'>,
  files: VolumeFiles,
  volume_id: string,
  { data_id, work_id }: Place,
): Promise<void> {
  await files.discard(work_id)
  await volumes.clear(volume_id, data_id)
}
/** Removes the data of a trial, and what holds them. */
export async function dropPlace(
  volumes: Pick<VolumePort, 'removeData'>,
  files: VolumeFiles,
  { data_id, work_id }: Place,
): Promise<void> {
  await files.discard(work_id)
  await volumes.removeData(data_id)
}

/** Volumes: their files as a tar, whatever an app keeps in them. */
export function createVolumeTarget(
  volumes: () => VolumePort,
  holders: () => HolderPort,
  files: VolumeFiles,
  appName: (id: string) => string | undefined,
): BackupTarget {
  const holdersOf = (id: string): string[] => {
    const row = volumes().find(id)
    return row ? holders().of(row.project_id, [id]) : []
  }
  const holdersNames = (id: string) => holdersOf(id).flatMap((app) => appName(app) ?? [])
  const placeOf = ({ restore_id, project_id }: Pick<RestoreRequest, 'restore_id' | 'project_id'>) => ({
    data_id: dataFor(restore_id),
    project_id,
    work_id: restore_id,
  })
  const isTaken = ({ target_id, restore_id }: RestoreRequest) =>
    volumes().find(target_id) !== undefined && volumes().dataOf(target_id) === dataFor(restore_id)
  /** Whatever uses a volume ends, sees it with other data, and starts again. */
  async function between(id: string, change: () => void, signal: AbortSignal): Promise<void> {
    const apps = holdersOf(id)
    for (const app of apps) await holders().halt(app, signal)
    change()
    for (const app of apps) await holders().bring(app, signal)
  }

  return {
    kind: 'volume',
    extension: () => 'tar',
    find(id) {
      const row = id === null ? undefined : volumes().find(id)
      if (!row) return undefined
      const { name, project_id } = row
      return { id: row.id, name, project_id, engine: null, version: null, apps: holdersNames(row.id) }
    },
    requireReadable(id) {
      const status = volumes().find(id!)?.status
      if (status !== 'ready') throw conflict(`Cannot back up a volume while it is ${status}.`)
    },
    // A paused app is in nobody else's hands meanwhile.
    lanes: (id, { pause_app }) => (pause_app ? holdersOf(id!).map((app) => `app:${app}`) : []),
    async dump(id, { pause_app, work_id }, signal) {
      const row = volumes().find(id!)
      if (!row) throw new Fatal('gone', 'The volume is gone.')
      const place = { data_id: volumes().dataOf(row.id), project_id: row.project_id, work_id }
      const bytes = files.read(place, signal)
      return { bytes: pause_app ? whilePaused(holders(), holdersOf(row.id), bytes) : bytes, extension: 'tar' }
    },
    tidy: (work_id) => files.discard(work_id),
    async verify(backup, open, signal) {
      const work_id = `trial_${backup.id.split('_').at(-1)}`
      const place = { data_id: dataFor(work_id), project_id: backup.project_id, work_id }
      try {
        await emptyPlace(volumes(), files, backup.target_id ?? backup.id, place)
        await files.write(place, open(), signal)
        const { counts, objects, bytes } = await files.count(place, signal)
        return { counts, objects, rows: bytes }
      } finally {
        await dropPlace(volumes(), files, place)
      }
    },
    restore: {
      isNameTaken: (project_id, name) => volumes().isNameTaken(project_id, name),
      lanes(id) {
        const row = volumes().find(id)
        return [`volume:${id}`, ...(row ? holders().lanesOf(row.project_id, [id]) : [])]
      },
      begin({ mode, target_id, project_id, name }) {
        if (mode === 'in_place') {
          const row = target_id === null ? undefined : volumes().find(target_id)
          if (!row) throw conflict('The volume is gone. Restore the backup with mode «new».')
          if (!['ready', 'missing'].includes(row.status) || row.filling === 1)
            throw conflict(`Cannot restore a volume while it is ${row.status}.`)
          return row.id
        }
        const [fault] = v.safeParse(NewVolume.entries.name, name).issues ?? []
        if (fault) throw invalid('name', fault.message)
        const { access = 'single_writer', size_bytes = null } =
          (target_id === null ? undefined : volumes().find(target_id)) ?? {}
        return volumes().createForRestore(PLATFORM, project_id, { name, access, size_bytes })
      },
      async prepare(request, open, signal) {
        if (!volumes().find(request.target_id)) throw new Fatal('gone', 'The volume is gone.')
        await emptyPlace(volumes(), files, request.target_id, placeOf(request))
        await files.write(placeOf(request), open(), signal)
      },
      async activate(request, signal) {
        const { target_id, restore_id, mode } = request
        if (mode === 'new') return volumes().replaceData(target_id, dataFor(restore_id))
        if (!isTaken(request)) await volumes().forgetData(target_id)
        await between(target_id, () => volumes().replaceData(target_id, dataFor(restore_id)), signal)
      },
      async revert(request, signal) {
        if (request.mode === 'new') return
        await between(
          request.target_id,
          () => volumes().returnData(request.target_id, dataFor(request.restore_id)),
          signal,
        )
      },
      finish: ({ target_id }) => volumes().forgetData(target_id),
      async discard(request) {
        await files.discard(request.restore_id)
        if (!isTaken(request)) await volumes().removeData(dataFor(request.restore_id))
      },
      ended({ target_id, mode }, status) {
        if (mode === 'new' && status === 'failed') volumes().dropUnfilled(target_id)
      },
    },
  }
}
