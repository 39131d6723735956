import { setTimeout as wait } from 'node:timers/promises'
import { Fatal } from '#server/kernel/jobs/definition'
import { requireSuccess } from './commands.ts'
import type { DatabaseContext } from './context.ts'
import { engineOf } from './engines.ts'
import type { DatabaseInstance } from './instance.ts'
import type { DatabaseRow } from './repository.ts'
import { ensureLogin, type Servers } from './servers.ts'
import { hostOf, type ServerSpec, type SpareSpec } from './workload.ts'

/** The engine starts a server that ended again within seconds. */
const COMEBACK_LIMIT_MS = 30_000
const COMES_BACK = new Set<DatabaseRow['status']>(['running', 'restoring', 'upgrading'])
const PAUSE_MS = 200

/** What is said of a database whose data vanished. */
export const lostVolume = ({ volume_id, name }: Pick<DatabaseRow, 'volume_id' | 'name'>) =>
  new Fatal(
    'volume_missing',
    `The volume ${volume_id} with the data of ${name} is no longer on the server.`,
    'Restore it from a backup. An empty one is not put in its place.',
  )

/** The server that apps talk to: what it looks like, and how it is brought up. */
export function createLive(context: DatabaseContext, servers: Servers) {
  const { engine, vault, get, change, log, clock } = context

  /** Undefined while the image is not known, because it was never looked up. */
  const specOf = (row: DatabaseRow): ServerSpec => ({
    database_id: row.id,
    project_id: row.project_id,
    preview_id: row.preview_id,
    volume_id: row.volume_id,
    image_id: row.image_id ?? '',
    engine: engineOf(row.engine),
    version: row.version,
    credentials: vault.current(row),
    limits: { cpus: row.cpus, memory_bytes: row.memory_bytes },
    alias: hostOf(row.name),
    ...(row.public_port === null ? {} : { public_port: row.public_port }),
    ...(row.archive_days === null ? {} : { keeps_log: true }),
  })

  /** Id of the image of a version. One that is here is taken as it is, unless a newer one is asked for. */
  async function imageOf(
    { image }: { image: string },
    version: string,
    fresh: boolean,
    signal: AbortSignal,
  ): Promise<string> {
    const reference = `${image}:${version}`
    const here = await engine.findImage(reference)
    if (here && !fresh) return here.id
    try {
      return (await engine.pullImage(reference, { onLog: () => {} }, signal)).id
    } catch (error) {
      if (!here || signal.aborted) throw error
      log.warn('A newer image of a database could not be looked for', { image: reference, error })
      return here.id
    }
  }

  /** The volume must be there once it was made: an empty one in its place would look like lost data. */
  async function ensureVolume(row: DatabaseRow): Promise<void> {
    if (row.volume_made === 0) {
      await engine.ensureVolume(row.volume_id, { database: row.id, project: row.project_id })
      change(row.id, { volume_made: 1 })
    } else if (!(await engine.findVolume(row.volume_id))) throw lostVolume(row)
  }

  return {
    specOf,
    /** A server with its credentials that no app reaches and whose log nobody keeps. */
    spareOf(row: DatabaseRow): SpareSpec {
      const { alias: _name, public_port: _port, keeps_log: _log, ...spec } = specOf(row)
      return spec
    },
    imageOf,
    ensureVolume,
    /** Makes sure that the server of a database runs as its row says, answers, and takes its login. */
    async bringUp(id: string, signal: AbortSignal): Promise<DatabaseInstance> {
      const row = get(id)
      await ensureVolume(row)
      const spec = specOf(row)
      const is_new = row.status === 'creating'
      const instance = await (is_new ? servers.make(spec, signal) : servers.ensure(spec, signal))
      if (!is_new) await ensureLogin(instance, signal)
      const log = spec.keeps_log ? spec.engine.point_in_time : undefined
      if (log) await requireSuccess(instance, log.prepare(), signal)
      if (!is_new) await servers.supervise(spec)
      return instance
    },
    /** The live server, if it runs. */
    instance: (row: DatabaseRow): Promise<DatabaseInstance | undefined> => servers.running(specOf(row)),
    /**
     * The live server once it answers: after a crash of its own the engine starts it again, and it reads its log
     * before it takes anybody. Undefined when none of it runs or comes back.
     */
    async answering(row: DatabaseRow, signal: AbortSignal): Promise<DatabaseInstance | undefined> {
      const spec = specOf(row)
      const end = clock.monotonic_ms() + COMEBACK_LIMIT_MS
      while (!(await servers.running(spec))) {
        const comes_back = COMES_BACK.has(row.status) && clock.monotonic_ms() < end
        if (!comes_back) return undefined
        await wait(PAUSE_MS, undefined, { signal })
      }
      return servers.untilReady(spec, signal)
    },
  }
}
export type Live = ReturnType<typeof createLive>
