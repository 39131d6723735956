import { setTimeout as wait } from 'node:timers/promises'
import * as v from 'valibot'
import { AppName } from '#server/apps/configuration-schema'
import type { EngineName } from '#server/databases/engines'
import { PLATFORM } from '#server/kernel/access'
import { ApiError, conflict, invalid } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import { Fatal } from '#server/kernel/jobs/definition'
import { ArchiveError } from '../archive/archive-error.ts'
import { readSections } from '../archive/bundle.ts'
import type { BackupTarget, RestoreRequest } from '../target.ts'
import type { VolumeFiles } from '../volume-files.ts'
import { type AppCopy, copyIn, readCopy, renamed, withinProject } from './app-copy.ts'
import { joinKept, type Kept, keptOf } from './app-kept.ts'
import type { AppPorts } from './app-ports.ts'
import { createSurroundings } from './app-surroundings.ts'
import { dataFor, emptyPlace } from './volume.ts'

/** Where each part of an archive goes; settled once, before anything is made. */
interface Plan {
  volumes: { name: string; id: string; data_id: string; new_name: string }[]
  databases: {
    name: string
    id: string
    restore_id: string
    new_name: string
    /** In place: whether this restore has the database, which another one may have before. Absent in older plans. */
    begun?: boolean
  }[]
}
const LONGEST_DATABASE = 40
const LONGEST_VOLUME = 63
const PAUSE_MS = 300
const NOTHING: Plan = { volumes: [], databases: [] }
const planIn = ({ prepared }: RestoreRequest): Plan => (prepared as Plan | undefined) ?? NOTHING

/** Restores of whole apps: their parts beside what serves, then all of them at once in its place. */
export function createAppRestore(
  ports: () => AppPorts,
  files: VolumeFiles,
  database: NonNullable<BackupTarget['restore']>,
): NonNullable<BackupTarget['restore']> {
  const surroundings = createSurroundings(ports)
  const requestFor = (
    request: RestoreRequest,
    { id, name, restore_id }: Plan['databases'][number],
  ): RestoreRequest => {
    const row = ports().databases.find(id)
    const { engine = null, version = null } = row ?? {}
    return { ...request, target_id: id, restore_id, name, engine, version, prepared: undefined }
  }
  /** Databases that this restore has in hand: what another one does to the rest is left to that. */
  const eachDatabase = (request: RestoreRequest) =>
    planIn(request)
      .databases.filter(({ begun }) => begun !== false)
      .map((one) => requestFor(request, one))
  /** What of an archive comes back where it is restored. */
  const within = ({ project_id }: RestoreRequest, copy: AppCopy) =>
    withinProject(copy, project_id, (id) => ports().volumes.find(id)?.project_id)
  const isTaken = ({ id, data_id }: Plan['volumes'][number]) =>
    ports().volumes.find(id) !== undefined && ports().volumes.dataOf(id) === data_id

  /**
   * In place every part that is meant goes where it came from; of a new app, each has a name that
   * is free. Throws for what the app, or the backup, does not have.
   */
  function planOf(request: RestoreRequest, copy: AppCopy): Plan {
    const { volumes, databases, apps } = ports()
    const { target_id, project_id, mode, parts } = request
    const app = apps.find(target_id)
    if (!app) throw new Fatal('gone', 'The app is gone.')
    const present = volumes
      .releaseMounts(target_id)
      .volumes.flatMap((mount) => volumes.find(mount.volume_id) ?? [])
    const missing = (what: string, name: string) =>
      new Fatal(
        'changed',
        `The app has no ${what} ${name} any more, which is in the backup.`,
        'Restore the backup as a new app.',
      )
    const free = (name: string, is_taken: boolean, longest: number) =>
      is_taken ? `${app.name}-${name}`.slice(0, longest).replace(/-+$/, '') : name
    const isMeant = (id: string | undefined) => !parts || (id !== undefined && parts.includes(id))
    const plan: Plan = {
      volumes: copy.volumes.flatMap(({ name }) => {
        const found = present.find((volume) => volume.name === name)
        if (!isMeant(found?.id)) return []
        if (mode === 'in_place' && !found) throw missing('volume', name)
        const id = mode === 'in_place' ? found!.id : newId('vol')
        const new_name = free(name, volumes.isNameTaken(project_id, name), LONGEST_VOLUME)
        return [{ name, id, data_id: dataFor(newId('job')), new_name }]
      }),
      databases: copy.databases.flatMap(({ name }) => {
        const found = databases.inProject(project_id).find((row) => row.name === name)
        if (!isMeant(found?.id)) return []
        if (mode === 'in_place' && !found) throw missing('database', name)
        const id = mode === 'in_place' ? found!.id : newId('db')
        const new_name = free(name, databases.isNameTaken(project_id, name), LONGEST_DATABASE)
        const in_hand = mode === 'in_place' ? { begun: false } : {}
        return [{ name, id, restore_id: newId('job'), new_name, ...in_hand }]
      }),
    }
    const held = [...plan.volumes, ...plan.databases].map(({ id }) => id)
    if (parts?.some((id) => !held.includes(id)))
      throw new Fatal('changed', `The backup of ${app.name} was made before this was part of it.`)
    return plan
  }
  /** Takes a database in hand; throws while another restore, or something else, has it. */
  function take(part: RestoreRequest, one: Plan['databases'][number], remember: () => void): void {
    const is_restored = ports().databases.find(one.id)?.status === 'restoring'
    if (is_restored && one.begun !== false) return
    const before = one.begun
    one.begun = true
    remember()
    try {
      database.begin(part)
    } catch (error) {
      one.begun = before
      remember()
      throw error
    }
  }
  /** Rows for a new app and its parts; what an attempt before this one made is left alone. */
  async function make(
    request: RestoreRequest,
    plan: Plan,
    copy: AppCopy,
    signal: AbortSignal,
  ): Promise<void> {
    const { apps, env, volumes, databases } = ports()
    const { target_id, project_id } = request
    const names = new Map(plan.databases.map(({ name, new_name }) => [name, new_name]))
    apps.restoreSnapshot(PLATFORM, target_id, copy.app)
    env.restore(PLATFORM, target_id, renamed(copy.variables, names))
    for (const { name, id, new_name } of plan.volumes) {
      const { access, size_bytes } = copy.volumes.find((volume) => volume.name === name)!
      if (!volumes.find(id))
        volumes.createForRestore(PLATFORM, project_id, { name: new_name, access, size_bytes }, id)
    }
    for (const { name, id, new_name } of plan.databases) {
      const { engine, version, cpus, memory_bytes } = copy.databases.find((one) => one.name === name)!
      if (databases.find(id)) continue
      const limits = { cpus, memory_bytes }
      const body = { name: new_name, engine: engine as EngineName, version, public: false, limits }
      databases.create(PLATFORM, project_id, body, { id, to_fill: true })
    }
    const isMade = ({ id }: { id: string }) => databases.find(id)?.status !== 'creating'
    while (!plan.databases.every(isMade)) await wait(PAUSE_MS, undefined, { signal })
  }
  /** Mounts and links of a new app, once what they lead to is there; answers what of the kept ones is not. */
  function join({ target_id, project_id }: RestoreRequest, plan: Plan, copy: AppCopy): string[] {
    const { volumes, databases } = ports()
    const taken = new Set(volumes.mountsOf(target_id).map(({ path }) => path))
    const kept = keptOf(ports(), project_id, copy)
    const stack = joinServices(target_id, plan, copy, kept.volumes)
    for (const { path, volume, read_only } of copy.mounts.filter((mount) => mount.path.startsWith('/'))) {
      const volume_id = plan.volumes.find(({ name }) => name === volume)?.id
      if (volume_id && !taken.has(path)) volumes.mount(PLATFORM, target_id, { path, volume_id, read_only })
    }
    for (const { id, name } of plan.databases) {
      const key = copy.databases.find((one) => one.name === name)?.key
      const is_linked = databases.linkedTo(target_id).some((linked) => linked.id === id)
      if (key && !is_linked) databases.links.add(PLATFORM, id, { app_id: target_id, key })
    }
    return [...kept.left_out, ...stack, ...joinKept(ports(), target_id, copy, kept)]
  }
  /**
   * Mounts of the services of a compose app: volume of its file, service, and the path there. Answers which of the
   * kept volumes another app has by now.
   */
  function joinServices(app_id: string, plan: Plan, copy: AppCopy, kept: Kept['volumes']): string[] {
    const { apps, volumes } = ports()
    const heirOf = (id: string) => volumes.writersOf(id).find((writer) => writer !== app_id)
    const places = [...plan.volumes, ...kept.filter(({ id }) => heirOf(id) === undefined)]
    const left_out = new Set<string>()
    const ids = new Map<string, string>()
    const desired = copy.mounts.flatMap(({ path, volume, read_only }) => {
      const [name = '', service = '', ...rest] = path.split(':')
      if (path.startsWith('/')) return []
      const id = places.find((one) => one.name === volume)?.id
      const heir = heirOf(kept.find((one) => one.name === volume)?.id ?? '')
      if (id === undefined && heir !== undefined)
        left_out.add(
          `The volume ${volume} is written by ${apps.find(heir)?.name ?? heir}: an empty one is in its place.`,
        )
      if (id === undefined) return []
      ids.set(name, id)
      return [{ volume: name, service, path: rest.join(':'), read_only }]
    })
    if (desired.length > 0) volumes.restoreStackMounts(app_id, desired, ids)
    return [...left_out]
  }
  /** The apps that use the parts end, see them changed, and start again. */
  async function between(request: RestoreRequest, change: () => Promise<void>, signal: AbortSignal) {
    const { holders } = ports().deployments
    const ids = planIn(request).volumes.map(({ id }) => id)
    const apps = [...new Set([request.target_id, ...holders.of(request.project_id, ids)])]
    for (const app of apps) await holders.halt(app, signal)
    await change()
    for (const app of apps) await holders.bring(app, signal)
  }
  return {
    lanes(id) {
      const { apps, volumes, deployments } = ports()
      const app = apps.find(id)
      const held = [...new Set(volumes.mountsOf(id).flatMap(({ volume_id }) => volume_id ?? []))]
      const others = app ? deployments.holders.lanesOf(app.project_id, held) : []
      return [`app:${id}`, ...held.map((volume) => `volume:${volume}`), ...others]
    },
    isNameTaken: (_project_id, name) => ports().apps.isNameTaken(name),
    requirePossible({ mode, target_id, name }) {
      const { apps } = ports()
      if (mode === 'new') {
        const [fault] = v.safeParse(AppName, name).issues ?? []
        if (fault) throw invalid('name', fault.message)
        return apps.requireFreeName(name)
      }
      const row = target_id === null ? undefined : apps.find(target_id)
      if (!row) throw conflict('The app is gone. Restore the backup with mode «new».')
      if (row.status === 'deleting') throw conflict('Cannot restore an app while it is being deleted.')
    },
    begin: ({ mode, target_id, project_id, name }) =>
      mode === 'new' ? ports().apps.createForRestore(PLATFORM, project_id, name) : target_id!,
    async prepare(request, open, signal, remember) {
      let plan = request.prepared as Plan | undefined
      let is_whole = request.parts === undefined
      for await (const { name, bytes } of readSections(open())) {
        if (name === 'app.json') {
          const { copy, left_out } = within(request, await readCopy(bytes))
          is_whole &&= left_out.length === 0
          plan ??= planOf(request, copy)
          remember(plan)
          request.prepared = plan
          if (request.mode === 'new') await make(request, plan, copy, signal)
          continue
        }
        const [kind, file = ''] = name.split('/')
        const called = file.split('.')[0]
        const volume = kind === 'volumes' && plan?.volumes.find((one) => one.name === called)
        const server = kind === 'databases' && plan?.databases.find((one) => one.name === called)
        if (volume) {
          const { data_id } = volume
          const place = { data_id, project_id: request.project_id, work_id: request.restore_id }
          await emptyPlace(ports().volumes, files, volume.id, place)
          await files.write(place, bytes, signal)
        } else if (server) {
          const part = requestFor(request, server)
          if (request.mode === 'in_place') take(part, server, () => remember(plan))
          await database.prepare(
            part,
            () => bytes,
            signal,
            () => {},
          )
        } else if (is_whole)
          throw new ArchiveError('damaged', 'The archive holds something that it does not name.')
      }
    },
    async activate(request, signal) {
      const { volumes } = ports()
      const change = async () => {
        for (const { id, data_id } of planIn(request).volumes) volumes.replaceData(id, data_id)
        for (const part of eachDatabase(request)) await database.activate(part, signal)
      }
      if (request.mode === 'new') return change()
      for (const one of planIn(request).volumes) if (!isTaken(one)) await volumes.forgetData(one.id)
      await between(request, change, signal)
    },
    async revert(request, signal) {
      if (request.mode === 'new') return
      const putBack = async () => {
        for (const { id, data_id } of planIn(request).volumes) ports().volumes.returnData(id, data_id)
        for (const part of eachDatabase(request)) await database.revert(part, signal)
      }
      await between(request, putBack, signal)
    },
    async finish(request, open) {
      const { apps, volumes } = ports()
      const { target_id, mode, parts } = request
      if (parts) {
        for (const { id } of planIn(request).volumes) await volumes.forgetData(id)
        return []
      }
      const { copy, left_out } = within(request, await copyIn(open))
      if (mode === 'in_place') {
        left_out.push(...surroundings.restoreInPlace(target_id, copy))
        for (const { id } of planIn(request).volumes) await volumes.forgetData(id)
        return [...left_out, ...surroundings.restoreNames(target_id, target_id, copy)]
      }
      for (const part of eachDatabase(request)) await database.finish?.(part, open)
      left_out.push(...join(request, planIn(request), copy))
      surroundings.restoreFiles(target_id, copy.files)
      left_out.push(...surroundings.restoreNames(target_id, request.source_id ?? null, copy))
      if (apps.find(target_id)?.status === 'stopped') surroundings.deploy(target_id, copy)
      return left_out
    },
    async discard(request) {
      await files.discard(request.restore_id)
      for (const one of planIn(request).volumes)
        if (!isTaken(one)) await ports().volumes.removeData(one.data_id)
      for (const part of eachDatabase(request)) await database.discard(part)
    },
    ended(request, status) {
      for (const part of eachDatabase(request)) database.ended?.(part, status)
      if (request.mode === 'in_place' || status === 'succeeded') return
      for (const { id } of planIn(request).volumes) ports().volumes.dropUnfilled(id)
      try {
        ports().apps.delete(PLATFORM, request.target_id, { volumes: true, skip_backup: true })
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
      }
    },
  }
}
