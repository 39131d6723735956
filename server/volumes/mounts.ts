import { createHash } from 'node:crypto'
import { type Actor, developerProjects, mayOnlyRead } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict, invalid, notFound } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import { mapInPieces } from '#server/kernel/pace'
import { openReadable, type Secrets } from '#server/kernel/secrets'
import {
  MAIN_PROCESS,
  type Mount as EngineMount,
  type UpdateStrategy,
} from '#server/platform/engine/workload'
import { isWithin } from '#server/kernel/mount-path'
import { distinctName, freeName, stackVolumeName } from './names.ts'
import type { MountRow, VolumeRepository, VolumeRow } from './repository.ts'
import type { Mount, MountChange, NewMount } from './schema.ts'

const MAX_MOUNTS = 50
const DEFAULT_MODE = 0o644

/** The app as mounts see it. */
export interface MountedApp {
  id: string
  name: string
  project_id: string
  status: string
}
export interface MountOptions {
  db: Db
  clock: Clock
  audit: AuditTrail
  secrets: Secrets
  repository: VolumeRepository
  ports: {
    app(id: string): MountedApp | undefined
    /** What the next release of an app runs. */
    processes(app_id: string): { name: string; replicas: number }[]
    appChanged(app_id: string, actor: Actor): void
    /** Throws 409 where the app is pinned to a server that has no volumes. */
    requireAtHome(app_id: string): void
  }
}
/** The app of a compose file. */
export interface StackApp extends Pick<MountedApp, 'id' | 'name' | 'project_id'> {
  /** Set for the app of a preview. */
  preview_id?: string | null
}
/** A volume of a compose file where one of its services mounts it. */
export interface StackMount {
  volume: string
  service: string
  path: string
  read_only: boolean
}
/** What the next release of an app mounts. */
export interface AppMounts {
  /** Tells one set of mounts from another: mounts are made and removed, never changed. */
  ids: string[]
  volumes: Extract<EngineMount, { kind: 'volume' }>[]
  files: Extract<EngineMount, { kind: 'file' }>[]
  /** Volumes that the release writes to and no other instance may. */
  exclusive: string[]
}

/** What the text of a mounted file is sealed for. */
export const contentContext = (id: string): string => `mounts/content/${id}`

/** What apps mount: volumes and inline files. */
export function createMounts({ db, clock, audit, secrets, repository, ports }: MountOptions) {
  const appOf = (id: string): MountedApp => {
    const app = ports.app(id)
    if (!app) throw notFound('app')
    return app
  }
  const volumeOf = ({ volume_id }: MountRow): VolumeRow | undefined =>
    volume_id === null ? undefined : repository.find(volume_id)
  const view = (row: MountRow): Mount => ({
    id: row.id,
    app_id: row.app_id,
    kind: row.volume_id ? 'volume' : 'file',
    path: row.path,
    volume_id: row.volume_id,
    volume_name: volumeOf(row)?.name ?? null,
    read_only: row.read_only === 1,
    mode: row.mode === null ? null : `0${row.mode.toString(8).padStart(3, '0')}`,
    content_bytes: row.content_bytes,
    content_sha256: null,
    created_at: row.created_at,
  })
  /** With the digest of a file, for those who may set it: it tells whether a text is the one that is there. */
  const viewFor = (actor: Actor, app: MountedApp, row: MountRow): Mount => {
    const theirs = developerProjects(actor)
    const may_set =
      !mayOnlyRead(actor) && actor.scope === 'full' && (theirs?.includes(app.project_id) ?? true)
    if (row.content === null || !may_set) return view(row)
    const [text] = openReadable(secrets, [[row.content, contentContext(row.id)]])
    if (text === undefined) return view(row)
    return { ...view(row), content_sha256: createHash('sha256').update(text).digest('hex') }
  }
  /** Volumes that only one instance of the app may write to. */
  const exclusiveOf = (app_id: string): VolumeRow[] =>
    repository
      .mountsOfApp(app_id)
      .filter(({ read_only }) => read_only === 0)
      .flatMap((mount) => volumeOf(mount) ?? [])
      .filter(({ access }) => access === 'single_writer')
  const updateOf = (app_id: string): UpdateStrategy =>
    exclusiveOf(app_id).length > 0 ? 'stop_first' : 'start_first'

  const changed = (actor: Actor, before: UpdateStrategy, app: MountedApp, row: MountRow): MountChange => {
    const update = updateOf(row.app_id)
    const notice =
      update === 'stop_first' && before === 'start_first'
        ? `Only one instance may write to the volume ${volumeOf(row)?.name}. Once the app runs with it, each deployment ends the old instance before the new one starts, and the app does not answer in between.`
        : null
    return { ...viewFor(actor, app, row), update, notice }
  }
  const told = (row: MountRow | undefined) => {
    if (!row) return null
    const { id, path, volume_id, read_only } = view(row)
    return { mount_id: id, path, volume_id, read_only }
  }
  type Rows = readonly [before: MountRow | undefined, after: MountRow | undefined]
  const record = (actor: Actor, action: string, app: MountedApp, [before, after]: Rows) => {
    audit.record(actor, {
      action: `app.${action}`,
      resource_type: 'app',
      resource_id: app.id,
      project_id: app.project_id,
      before: told(before),
      after: told(after),
    })
    ports.appChanged(app.id, actor)
  }

  const requirePlace = (app: MountedApp, { path }: NewMount) => {
    const own = repository.mountsOfApp(app.id)
    if (own.length >= MAX_MOUNTS) throw conflict(`An app has at most ${MAX_MOUNTS} mounts.`)
    if (own.some((mount) => mount.path === path))
      throw conflict(`The app has a mount at ${path} already. Remove it first, or send "replace": true.`)
    const other = own.find((mount) => isWithin(path, mount.path) || isWithin(mount.path, path))
    if (other) throw invalid('path', `overlaps with the mount at ${other.path}; mounts lie side by side.`)
  }
  /** Instances of any process write to what their release mounts. */
  const requireOneInstance = (app_id: string, volume: VolumeRow, web?: number) => {
    const processes = ports
      .processes(app_id)
      .map((one) => (one.name === MAIN_PROCESS && web !== undefined ? { ...one, replicas: web } : one))
    const count = processes.reduce((sum, { replicas }) => sum + replicas, 0)
    if (count <= 1) return
    const listed = processes.map(({ name, replicas }) => `${name} ${replicas}`).join(', ')
    const others = processes.filter(({ name, replicas }) => name !== MAIN_PROCESS && replicas > 0)
    const remedy =
      others.length === 0
        ? 'Leave replicas at 1'
        : `Keep one instance in all: set replicas of ${others.map(({ name }) => name).join(' and ')} to 0`
    throw conflict(
      `Only one instance may write to the volume ${volume.name}, and the app would run ${count} instances (${listed}). ${remedy}, or give the volume the access "shared" if its programs lock their files themselves.`,
    )
  }
  const requireVolume = (app: MountedApp, id: string, read_only: boolean): VolumeRow => {
    const volume = repository.find(id)
    if (!volume || volume.project_id !== app.project_id)
      throw invalid('volume_id', 'is no volume of the project of this app.')
    if (volume.status !== 'ready')
      throw conflict(`The volume ${volume.name} is ${volume.status} and cannot be mounted.`)
    if (volume.access === 'shared' || read_only) return volume
    const writer = repository.mountsOfVolumes([id]).find((mount) => mount.read_only === 0)
    if (writer)
      throw conflict(
        `The volume ${volume.name} is written by ${ports.app(writer.app_id)?.name ?? 'another app'}, and only one may. Mount it read_only, or use a volume with access "shared".`,
      )
    requireOneInstance(app.id, volume)
    return volume
  }

  /** The columns of a mounted file; empty ones for a volume. */
  function fileOf(
    id: string,
    { content, mode }: NewMount,
  ): Pick<MountRow, 'content' | 'content_bytes' | 'mode'> {
    if (content === undefined) return { content: null, content_bytes: null, mode: null }
    return {
      content: secrets.seal(content, contentContext(id)),
      content_bytes: Buffer.byteLength(content),
      mode: mode ? Number.parseInt(mode, 8) : DEFAULT_MODE,
    }
  }

  return {
    mountsOf(app_id: string): Mount[] {
      return repository.mountsOfApp(app_id).map(view)
    },
    /** The same with digests of files, where the caller may know them: of fifty with 256 KiB each, in pieces. */
    mountsFor(actor: Actor, app_id: string): Promise<Mount[]> {
      const app = appOf(app_id)
      return mapInPieces(actor.user_id, repository.mountsOfApp(app_id), (row) => viewFor(actor, app, row))
    },
    mount: (actor: Actor, app_id: string, body: NewMount): MountChange =>
      db.tx(() => {
        const app = appOf(app_id)
        if (app.status === 'deleting') throw conflict('Cannot change an app while it is being deleted.')
        const before = updateOf(app_id)
        // It is back with the transaction when what is to take its place is refused.
        const old = body.replace
          ? repository.mountsOfApp(app_id).find(({ path }) => path === body.path)
          : undefined
        if (old) repository.deleteMount(old.id)
        requirePlace(app, body)
        if (body.volume_id !== undefined) {
          requireVolume(app, body.volume_id, body.read_only ?? false)
          ports.requireAtHome(app_id)
        }
        const id = newId('mnt')
        const row: MountRow = {
          id,
          app_id,
          path: body.path,
          volume_id: body.volume_id ?? null,
          read_only: body.read_only ? 1 : 0,
          ...fileOf(id, body),
          created_at: clock.iso(),
        }
        repository.insertMount(row)
        if (row.volume_id !== null) repository.setTouched(row.volume_id)
        record(actor, 'mount', app, [old, row])
        return changed(actor, before, app, row)
      }),
    unmount: (actor: Actor, app_id: string, mount_id: string): void =>
      db.tx(() => {
        const app = appOf(app_id)
        const row = repository.findMount(mount_id)
        if (row?.app_id !== app_id) throw notFound('mount')
        repository.deleteMount(mount_id)
        record(actor, 'unmount', app, [row, undefined])
      }),
    /** What the next release of the app mounts, in clear. Throws SecretUnreadableError. */
    releaseMounts(app_id: string): AppMounts {
      const rows = repository.mountsOfApp(app_id)
      return {
        ids: rows.map(({ id }) => id).sort(),
        volumes: rows.flatMap(({ volume_id, path, read_only }) =>
          volume_id === null ? [] : [{ kind: 'volume', volume_id, path, read_only: read_only === 1 }],
        ),
        files: rows.flatMap(({ id, path, content, mode }) =>
          content === null
            ? []
            : [
                {
                  kind: 'file',
                  path,
                  content: secrets.open(content, contentContext(id)),
                  mode: mode ?? DEFAULT_MODE,
                },
              ],
        ),
        exclusive: exclusiveOf(app_id).map(({ id }) => id),
      }
    },
    /** The volume that a compose app mounts under a name of its file. */
    stackVolume(app_id: string, volume: string): VolumeRow | undefined {
      const mount = repository.mountsOfApp(app_id).find((row) => row.path.startsWith(`${volume}:`))
      return mount && volumeOf(mount)
    },
    /** The volume of a stack's file that nobody mounts now, such as one that the file did not name for a while. */
    leftVolume(app: StackApp, volume: string, used: ReadonlySet<string> = new Set()): VolumeRow | undefined {
      if (app.preview_id) return undefined
      const is_free = ({ id }: VolumeRow) =>
        !used.has(id) && repository.mountsOfVolumes([id]).every(({ app_id }) => app_id === app.id)
      return [distinctName(app.name, volume), stackVolumeName(app.name, volume)]
        .map((name) => repository.findByName(app.project_id, name))
        .find((row) => row && is_free(row))
    },
    /**
     * The volume of the project that is that of a stack's file, or the name for a new one. Names of several may
     * come to the same, so one that another app mounts, or that is among `used`, is none of it. A preview takes
     * none that is there: its volumes go with it, whatever is in them.
     */
    stackPlace(app: StackApp, volume: string, used: ReadonlySet<string>): VolumeRow | string {
      return this.leftVolume(app, volume, used) ?? this.newVolumeName(app, volume)
    },
    /** A name that no volume of the project has. */
    newVolumeName: (app: StackApp, volume: string): string =>
      freeName(app.name, volume, (name) => repository.hasName(app.project_id, name)),
    /** Mounts of a compose app are those of its file: each tells its volume, its service and the path there. */
    setStackMounts(app_id: string, desired: readonly StackMount[], ids: ReadonlyMap<string, string>): void {
      const known = repository.mountsOfApp(app_id).filter(({ path }) => !path.startsWith('/'))
      const paths = new Map(desired.map((one) => [`${one.volume}:${one.service}:${one.path}`, one]))
      // What a service may have written is copied before it is deleted.
      for (const id of ids.values()) repository.setTouched(id)
      for (const row of known) if (!paths.has(row.path)) repository.deleteMount(row.id)
      for (const [path, { volume, read_only }] of paths)
        if (!known.some((row) => row.path === path))
          repository.insertMount({
            id: newId('mnt'),
            app_id,
            path,
            volume_id: ids.get(volume)!,
            read_only: read_only ? 1 : 0,
            content: null,
            content_bytes: null,
            mode: null,
            created_at: clock.iso(),
          })
    },
    /** Ids of the mounts of an app's next release, sorted. */
    mountIds: (app_id: string): string[] =>
      repository
        .mountsOfApp(app_id)
        .map(({ id }) => id)
        .sort(),
    /** Texts of an app's inline files, to keep them out of logs. */
    fileTexts: (app_id: string): string[] =>
      openReadable(
        secrets,
        repository
          .mountsOfApp(app_id)
          .flatMap(({ id, content }) =>
            content === null ? [] : [[content, contentContext(id)] as [string, string]],
          ),
      ),
    /**
     * Throws 409 when more instances of an app would run than may write to a volume of it; `web` is how many of
     * the process that takes requests, where that is not what is configured.
     */
    requireReplicas(app_id: string, web?: number): void {
      const [volume] = exclusiveOf(app_id)
      if (volume) requireOneInstance(app_id, volume, web)
    },
    /** Volumes that no other app mounts. */
    ownedBy(app_id: string): string[] {
      const ids = [...new Set(repository.mountsOfApp(app_id).flatMap(({ volume_id }) => volume_id ?? []))]
      return ids.filter((id) => repository.mountsOfVolumes([id]).every((mount) => mount.app_id === app_id))
    },
  }
}
