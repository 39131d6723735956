import { setTimeout as wait } from 'node:timers/promises'
import { Fatal } from '#server/kernel/jobs/definition'
import { requireSuccess, tellingLine } from './commands.ts'
import { sparingDisk } from '#server/platform/engine/sparing-disk'
import type { DatabaseContext } from './context.ts'
import type { FileRestore } from './engine.ts'
import type { DatabaseInstance } from './instance.ts'
import { type DumpSource, type RecoverySource, recoverServer } from './recovery.ts'
import { ensureLogin, makeLogin, type Servers } from './servers.ts'
import type { SpareSpec } from './workload.ts'

const ADOPT_LIMIT_MS = 600_000
const PAUSE_MS = 200

/** Spares go with their logs, and what serves is as it was: only the dump can be looked at. */
const unloadable = ({ engine: { label }, version }: SpareSpec): string =>
  `Nothing was changed. A dump has to be whole and made for ${label} ${version} or older, and what is in it must not need an administrator.`

/**
 * Servers on volumes of their own that no app can reach: where a dump is restored and tried before
 * it takes the place of anything. A row goes before each, so that none is forgotten after a crash.
 */
export function createSpares(
  { repository, clock, engine, db }: Pick<DatabaseContext, 'repository' | 'clock' | 'engine' | 'db'>,
  servers: Servers,
) {
  /** Begins with an empty volume: what an attempt before this one left would mix with the dump. */
  async function begin(spec: SpareSpec): Promise<void> {
    const { volume_id, database_id, project_id } = spec
    repository.insertSpare({ volume_id, database_id, project_id, created_at: clock.iso() })
    await servers.stop(volume_id, 0)
    await engine.removeVolume(volume_id)
    await engine.ensureVolume(volume_id, { database: database_id, project: project_id })
  }

  /** A server that ended while it read a dump: its log goes with it. */
  const endedBy = (error: unknown, spec: SpareSpec): unknown =>
    error instanceof Fatal && error.code === 'database_ended'
      ? new Fatal(
          error.code,
          `${spec.engine.label} could not load the dump: ${tellingLine(error.log) ?? error.message}`,
          unloadable(spec),
          error.log,
        )
      : error

  async function loadFile(
    spec: SpareSpec,
    restore: FileRestore,
    dump: DumpSource,
    signal: AbortSignal,
  ): Promise<DatabaseInstance> {
    const { credentials } = spec
    await servers.instead(
      spec,
      async (idle) => {
        await requireSuccess(idle, restore.write(), signal, { stdin: await dump() }, unloadable(spec))
      },
      signal,
    )
    const loading = { ...spec, command: restore.load }
    await servers.start(loading, signal)
    const loader = await servers.untilReady(loading, signal).catch((error: unknown) => {
      throw endedBy(error, spec)
    })
    await ensureLogin(loader, signal)
    await requireSuccess(loader, restore.adopt(credentials), signal)
    const end = clock.monotonic_ms() + ADOPT_LIMIT_MS
    while ((await loader.run(restore.adopted(credentials), {}, signal)).exit_code !== 0) {
      if (clock.monotonic_ms() > end)
        throw new Fatal('not_adopted', `${spec.engine.label} did not write its data within 600 seconds.`)
      await wait(PAUSE_MS, undefined, { signal })
    }
    await servers.stop(spec.volume_id)
    return servers.ensure(spec, signal)
  }

  return {
    /** Makes an empty spare that answers, with its database and its login. */
    async empty(spec: SpareSpec, signal: AbortSignal): Promise<DatabaseInstance> {
      await begin(spec)
      const instance = await servers.ensure(spec, signal)
      await makeLogin(instance, signal)
      return instance
    },
    /**
     * Makes a spare of a dump, in the way of its engine, and answers once it runs and answers.
     * Throws when the dump is refused or breaks off; a further attempt begins anew.
     */
    load: (spec: SpareSpec, dump: DumpSource, signal: AbortSignal): Promise<DatabaseInstance> =>
      sparingDisk(engine, signal, async (limited) => {
        const { restore } = spec.engine
        await begin(spec)
        if (restore.kind === 'file') return loadFile(spec, restore, dump, limited)
        const { load } = restore
        const instance = await servers.ensure({ ...spec, ...(load ? { command: load } : {}) }, limited)
        await makeLogin(instance, limited)
        const stdin = await dump()
        await requireSuccess(
          instance,
          restore.command(spec.credentials),
          limited,
          { stdin },
          unloadable(spec),
        )
        return instance
      }),
    /** Makes a spare of a copy of a server's files and the log since then, as it was at a moment. */
    recover: (spec: SpareSpec, source: RecoverySource, signal: AbortSignal): Promise<DatabaseInstance> =>
      sparingDisk(engine, signal, async (limited) => {
        await begin(spec)
        return recoverServer(servers, spec, source, limited)
      }),
    /** Ends a spare and removes its volume; a missing one is fine. */
    async remove(volume_id: string): Promise<void> {
      await servers.stop(volume_id, 0)
      await engine.removeVolume(volume_id)
      repository.deleteSpare(volume_id)
    },
    /** Volumes of a database that is going are nobody's from now on: whatever is left of them goes as spares do. */
    disown: ({ id: database_id, project_id }: { id: string; project_id: string }, ids: readonly string[]) =>
      db.tx(() => {
        for (const volume_id of ids)
          repository.insertSpare({ volume_id, database_id, project_id, created_at: clock.iso() })
      }),
    /** It has become the volume of a database; part of the transaction that says so. */
    adopt: (volume_id: string) => db.tx(() => void repository.deleteSpare(volume_id)),
    volumes: () => repository.spares().map(({ volume_id }) => volume_id),
  }
}
export type Spares = ReturnType<typeof createSpares>

/** What is in a database, object by object. */
export async function countObjects(
  instance: DatabaseInstance,
  signal: AbortSignal,
): Promise<Record<string, number>> {
  const { count } = instance.engine
  return count.read(await requireSuccess(instance, count.command(instance.credentials), signal))
}
