import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import * as v from 'valibot'
import type { Databases } from '#server/databases/assembly'
import type { Credentials, DatabaseEngine } from '#server/databases/engine'
import type { EngineName } from '#server/databases/engines'
import { DatabaseName } from '#server/databases/schema'
import type { SpareSpec } from '#server/databases/workload'
import { PLATFORM } from '#server/kernel/access'
import { conflict, invalid } from '#server/kernel/errors'
import { Fatal } from '#server/kernel/jobs/definition'
import type { BackupTarget, OpenDump, RestoreRequest } from '../target.ts'
import { attempt } from './left-out.ts'

export type DatabasePort = Pick<
  Databases,
  | 'find'
  | 'answering'
  | 'spares'
  | 'spareSpec'
  | 'imageOf'
  | 'replace'
  | 'forgetPrevious'
  | 'bringUp'
  | 'advance'
  | 'beginRestore'
  | 'isNameTaken'
  | 'create'
  | 'delete'
  | 'links'
  | 'view'
  | 'dump'
  | 'count'
  | 'engineNamed'
>

/** Memory of a server that only has to read a dump. */
const TRIAL_BYTES = 512 * 1024 ** 2

/** The volume of a restore or a trial is named after it, so that a step that runs again finds it. */
export const volumeOf = (work_id: string) => `vol_${work_id.split('_').at(-1)}`
const readableOf = (open: OpenDump) => () => Readable.from(open(), { objectMode: false })

/** Logins of a server that nobody but the trial itself knows. */
const strangers = (engine: DatabaseEngine): Credentials => ({
  username: engine.username(1),
  password: randomBytes(24).toString('hex'),
  database: 'restored',
  admin_password: randomBytes(24).toString('hex'),
})

/** Begins to fill what a restore is for; throws where a new database could not be made. */
export function admitRestore(
  databases: Pick<DatabasePort, 'find' | 'advance'>,
  { target_id, mode }: Pick<RestoreRequest, 'target_id' | 'mode'>,
): void {
  const row = databases.find(target_id)
  // A version before this one queued it without saying what for.
  if (mode === 'new' && row?.status === 'running') databases.advance(row.id, 'restore')
  if (databases.find(target_id)?.status !== 'restoring')
    throw new Fatal('not_ready', row?.last_error ?? 'The new database could not be made.')
}

/**
 * Links of a database that was deleted, to apps that are still there. One may have another variable of that name
 * by now: that is told, and the rest comes back.
 */
function relink(
  databases: Pick<DatabasePort, 'find' | 'view' | 'links'>,
  { target_id, source_id, links = [] }: RestoreRequest,
  appName: (id: string) => string | undefined,
): string[] {
  // Where it is still there, its apps have it.
  if (source_id && databases.find(source_id)) return []
  const left_out: string[] = []
  const linked = new Set(databases.view(target_id).links.map(({ app_id }) => app_id))
  for (const { app_id, key } of links) {
    const name = appName(app_id)
    if (name === undefined || linked.has(app_id)) continue
    attempt(`The app ${name} is not linked`, left_out, () =>
      databases.links.add(PLATFORM, target_id, { app_id, key }),
    )
  }
  return left_out
}

/** Databases of every engine: how to dump, restore and count is a fact of its descriptor. */
export function createDatabaseTarget(
  port: () => DatabasePort,
  appName: (id: string) => string | undefined,
): BackupTarget {
  const requireInstance = async (id: string, signal: AbortSignal) => {
    const instance = await port().answering(id, signal)
    if (!instance)
      throw new Fatal(
        'not_running',
        'The database does not run, so that nothing can be read from it.',
        'Start it, then try again.',
      )
    return instance
  }
  /** A server for a dump whose database may be gone. */
  const trialSpec = async (
    backup: {
      id: string
      target_id: string | null
      project_id: string
      engine: string | null
      version: string | null
    },
    signal: AbortSignal,
  ): Promise<SpareSpec> => {
    const { engine: name, version } = backup
    const engine = port().engineNamed(name ?? '')
    if (!engine || version === null)
      throw new Fatal('unknown_engine', 'This version of Portreeve does not know the engine of the backup.')
    const database_id = backup.target_id ?? backup.id
    return {
      database_id,
      project_id: backup.project_id,
      volume_id: volumeOf(backup.id),
      image_id: await port().imageOf(engine, version, false, signal),
      engine,
      version,
      credentials: strangers(engine),
      limits: { cpus: 1, memory_bytes: Math.max(TRIAL_BYTES, engine.least_memory_bytes) },
    }
  }
  const specOf = ({ target_id, restore_id }: RestoreRequest): SpareSpec =>
    port().spareSpec(target_id, volumeOf(restore_id))
  const isTaken = (request: RestoreRequest) =>
    port().find(request.target_id)?.volume_id === volumeOf(request.restore_id)

  return {
    kind: 'database',
    extension: ({ engine }) => port().engineNamed(engine ?? '')?.dump.extension ?? 'dump',
    find(id) {
      const row = id === null ? undefined : port().find(id)
      if (!row) return undefined
      const { project_id, name, engine, version } = row
      const links = port()
        .view(row.id)
        .links.map(({ app_id, key }) => ({ app_id, key }))
      const apps = links.flatMap(({ app_id }) => appName(app_id) ?? [])
      return { id: row.id, name, project_id, engine, version, apps, links }
    },
    requireReadable(id) {
      const status = port().find(id!)?.status
      if (status !== 'running')
        throw conflict(`Cannot back up a database while it is ${status}. It must run.`)
    },
    async dump(id, _options, signal) {
      const instance = await requireInstance(id!, signal)
      return { bytes: port().dump(instance, signal), extension: instance.engine.dump.extension }
    },
    tidy: (work_id) => port().spares.remove(volumeOf(work_id)),
    async verify(backup, open, signal) {
      const spec = await trialSpec(backup, signal)
      try {
        const server = await port().spares.load(spec, readableOf(open), signal)
        return { counts: await port().count(server, signal) }
      } finally {
        await port().spares.remove(spec.volume_id)
      }
    },
    restore: {
      lanes: (id) => [`database:${id}`],
      isNameTaken: (project_id, name) => port().isNameTaken(project_id, name),
      begin({ mode, target_id, project_id, preview_id = null, name, engine, version }) {
        if (mode === 'in_place') {
          if (target_id === null || !port().find(target_id))
            throw conflict('The database is gone. Restore the backup with mode «new».')
          port().beginRestore(target_id)
          return target_id
        }
        if (!port().engineNamed(engine ?? '')) throw conflict('The engine of the backup is not known.')
        // Names of other targets have other rules, so the schema of the request cannot tell.
        const [fault] = v.safeParse(DatabaseName, name).issues ?? []
        if (fault) throw invalid('name', fault.message)
        const limits = target_id === null ? undefined : port().find(target_id)
        const body = {
          name,
          engine: engine as EngineName,
          public: false,
          ...(version === null ? {} : { version }),
          limits: { cpus: limits?.cpus ?? 1, ...(limits ? { memory_bytes: limits.memory_bytes } : {}) },
        }
        const made = port().create(PLATFORM, project_id, body, { preview_id, to_fill: true })
        return made.id
      },
      async prepare(request, open, signal) {
        admitRestore(port(), request)
        await port().spares.load(specOf(request), readableOf(open), signal)
      },
      async activate(request, signal) {
        const { volume_id, version, image_id } = specOf(request)
        await port().replace(request.target_id, { volume_id, version, image_id }, signal)
      },
      async revert(request, signal) {
        const row = port().find(request.target_id)
        if (!row || request.mode === 'new') return
        const { previous_volume_id: volume_id, previous_version: version } = row
        const engine = port().engineNamed(row.engine)
        if (!isTaken(request)) await port().bringUp(row.id, signal)
        else if (volume_id !== null && version !== null && engine) {
          const image_id = await port().imageOf(engine, version, false, signal)
          await port().replace(row.id, { volume_id, version, image_id }, signal)
        }
        await port().forgetPrevious(row.id, volumeOf(request.restore_id))
      },
      async finish(request) {
        const { mode, target_id } = request
        if (mode !== 'new') return
        // What a new database was made with is empty.
        await port().forgetPrevious(target_id, port().find(target_id)?.previous_volume_id ?? null)
        return relink(port(), request, appName)
      },
      async discard(request) {
        if (isTaken(request)) return
        await port().spares.remove(volumeOf(request.restore_id))
      },
      ended({ target_id, mode }, status) {
        const row = port().find(target_id)
        if (row?.status === 'restoring' && status === 'succeeded')
          port().advance(target_id, 'ready', { last_error: null })
        else if (row?.status === 'restoring') port().advance(target_id, 'keep')
        if (row && status === 'failed' && mode === 'new' && row.status !== 'deleting')
          port().delete(PLATFORM, target_id, { skip_backup: true })
      },
    },
  }
}
