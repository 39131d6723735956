import { Fatal, type JobDefinition } from '#server/kernel/jobs/definition'
import { newId } from '#server/kernel/ids'
import { dumpStream } from './commands.ts'
import { engineOf } from './engines.ts'
import { type DatabasePayload, databaseJob, UPGRADE_KIND, type Workroom } from './lifecycle.ts'
import type { DatabaseRow } from './repository.ts'
import { countObjects } from './spares.ts'
import type { ServerSpec, SpareSpec } from './workload.ts'

export interface UpgradePayload extends DatabasePayload {
  version: string
}
export interface ConfirmPayload extends DatabasePayload {
  /** What was the previous volume when it was asked for: a second attempt must not take the next one. */
  volume_id: string
}
interface UpgradeState {
  volume_id: string
  image_id: string
  /** Image of the old version, to go back to. */
  old_image_id: string | null
  counts: Record<string, number>
}

/**
 * Throws 409 when one more replacement would keep more than the project may hold. The first is always possible:
 * somebody in an outage gets their data back whatever is held.
 */
export function requireRoomToKeep(
  ports: Pick<Workroom['ports'], 'requireStorage'>,
  { project_id, previous_volume_id }: Pick<DatabaseRow, 'project_id' | 'previous_volume_id'>,
): void {
  if (previous_volume_id === null) return
  ports.requireStorage(
    project_id,
    'Remove data from before earlier restores and upgrades (`previous_volume`)',
  )
}

/** Puts other data in the place of a database's own: after an upgrade, a restore, or on the way back. */
export function createReplacement(room: Workroom) {
  const { db, get, change, servers, spares, live, note, repository, clock } = room
  /** The previous data stay behind those that are replaced now, unless they are what comes back. */
  function setAside(row: DatabaseRow, taken: string) {
    const { id, project_id, previous_volume_id, previous_version } = row
    repository.deleteOlder(taken)
    if (previous_volume_id === null || previous_version === null || previous_volume_id === taken) return
    repository.insertOlder({
      volume_id: previous_volume_id,
      version: previous_version,
      used_bytes: row.previous_used_bytes,
      ...{ database_id: id, project_id, created_at: clock.iso() },
    })
  }
  const moveUp = (database_id: string): void =>
    db.tx(() => {
      const next = repository.older(database_id)[0]
      change(database_id, {
        previous_volume_id: next?.volume_id ?? null,
        previous_version: next?.version ?? null,
        previous_used_bytes: next?.used_bytes ?? null,
      })
      if (next) repository.deleteOlder(next.volume_id)
    })
  return {
    /**
     * Makes a volume that holds the whole database the one of the database; what was there stays as the
     * previous one, before those that are kept already. Idempotent.
     */
    async take(
      database_id: string,
      by: { volume_id: string; version: string; image_id: string | null },
      signal: AbortSignal,
    ): Promise<void> {
      const row = get(database_id)
      if (row.volume_id !== by.volume_id) {
        await servers.stop(by.volume_id)
        await servers.stop(row.volume_id)
        const known = repository.measured().find(({ volume_id }) => volume_id === by.volume_id)
        db.tx(() => {
          setAside(row, by.volume_id)
          change(row.id, {
            ...by,
            volume_made: 1,
            previous_volume_id: row.volume_id,
            previous_version: row.version,
            previous_used_bytes: row.used_bytes,
            // What was filled just now is measured soon; until then it counts as what it replaces.
            used_bytes: known?.used_bytes ?? row.used_bytes,
          })
          spares.adopt(by.volume_id)
          note(get(row.id), 'database.replaced', { volume_id: by.volume_id, previous: row.volume_id })
        })
      }
      await live.bringUp(database_id, signal)
    },
    /** Lets data from before go, if they are the previous ones; older ones take their place. */
    async confirm(database_id: string, volume_id: string | null): Promise<void> {
      if (volume_id === null || get(database_id).previous_volume_id !== volume_id) return
      await room.engine.removeVolume(volume_id)
      moveUp(database_id)
    },
    /** Forgets that there were data from before where their volume is on another machine, or gone. */
    async forgetVanished(database_id: string): Promise<void> {
      for (;;) {
        const { previous_volume_id } = get(database_id)
        if (previous_volume_id === null || (await room.engine.findVolume(previous_volume_id))) return
        moveUp(database_id)
      }
    },
  }
}
export type Replacement = ReturnType<typeof createReplacement>

/**
 * A later release line by dump: into a new volume, counted, and only then in the place of the old one. Nobody
 * writes meanwhile: what came after the dump would be lost.
 */
export function upgradeJob(
  room: Workroom,
  replacement: Replacement,
): JobDefinition<UpgradePayload, UpgradeState> {
  const { get, live, servers, spares } = room
  const spareOf = (payload: UpgradePayload, state: UpgradeState): SpareSpec => {
    const spec = live.spareOf(get(payload.database_id))
    return { ...spec, version: payload.version, volume_id: state.volume_id, image_id: state.image_id }
  }
  /** The server without its name and its port: nobody writes. */
  const closedOf = ({ database_id }: UpgradePayload): ServerSpec => {
    const { alias: _name, public_port: _port, ...closed } = live.specOf(get(database_id))
    return closed
  }
  const isTaken = (payload: UpgradePayload, state: UpgradeState) =>
    get(payload.database_id).volume_id === state.volume_id

  return databaseJob<UpgradePayload, UpgradeState>(room, {
    kind: UPGRADE_KIND,
    initial: () => ({ volume_id: newId('vol'), image_id: '', old_image_id: null, counts: {} }),
    succeeded: 'ready',
    failed: 'keep',
    steps: [
      {
        name: 'image',
        timeout_ms: 1_800_000,
        async run({ payload, state, signal }) {
          const { engine, image_id } = get(payload.database_id)
          state.old_image_id = image_id
          state.image_id = await live.imageOf(engineOf(engine), payload.version, false, signal)
        },
      },
      {
        name: 'isolate',
        async run({ payload, state, signal }) {
          const closed = closedOf(payload)
          await servers.stop(closed.volume_id)
          state.counts = await countObjects(await servers.ensure(closed, signal), signal)
        },
        async undo({ payload, signal }) {
          await live.bringUp(payload.database_id, signal)
        },
      },
      {
        name: 'copy',
        timeout_ms: 86_400_000,
        async run({ payload, state, signal }) {
          // It may have been killed with the process, and nobody else sees to it meanwhile.
          const old = await servers.ensure(closedOf(payload), signal)
          await spares.load(spareOf(payload, state), () => dumpStream(old, signal), signal)
        },
        async undo({ payload, state }) {
          if (!isTaken(payload, state)) await spares.remove(state.volume_id)
        },
      },
      {
        name: 'verify',
        async run({ payload, state, signal }) {
          const spec = spareOf(payload, state)
          // It may have been killed since it was filled; what it holds is on its volume.
          const copy = (await servers.running(spec)) ?? (await servers.ensure(spec, signal))
          const counts = await countObjects(copy, signal)
          const [before, after] = [state.counts, counts].map((all) => JSON.stringify(sorted(all)))
          if (before !== after)
            throw new Fatal(
              'copy_differs',
              `The copy does not hold what the original holds: ${before} became ${after}.`.slice(0, 1000),
              'The old version runs on. Look at what the new one said.',
            )
        },
      },
      {
        name: 'switch',
        run: ({ payload, state, signal }) =>
          replacement.take(
            payload.database_id,
            { volume_id: state.volume_id, version: payload.version, image_id: state.image_id },
            signal,
          ),
        // The new server did not come up in the place of the old one.
        async undo({ payload, state, signal }) {
          const { previous_volume_id, previous_version } = get(payload.database_id)
          if (isTaken(payload, state) && previous_volume_id !== null && previous_version !== null) {
            const old = {
              volume_id: previous_volume_id,
              version: previous_version,
              image_id: state.old_image_id,
            }
            await replacement.take(payload.database_id, old, signal)
          }
          await replacement.confirm(payload.database_id, state.volume_id)
        },
      },
    ],
  })
}
const sorted = (counts: Record<string, number>) =>
  Object.fromEntries(Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1)))

/** What becomes of the data from before an upgrade or a restore. */
export const previousJobs = (room: Workroom, replacement: Replacement) => [
  databaseJob<ConfirmPayload, object>(room, {
    kind: 'database.confirm',
    initial: () => ({}),
    succeeded: 'ready',
    failed: 'ready',
    steps: [
      {
        name: 'remove',
        run: ({ payload }) => replacement.confirm(payload.database_id, payload.volume_id),
      },
    ],
  }),
  databaseJob<DatabasePayload, { volume_id: string; version: string; image_id: string | null }>(room, {
    kind: 'database.revert',
    initial({ database_id }) {
      const { previous_volume_id, previous_version } = room.get(database_id)
      return { volume_id: previous_volume_id ?? '', version: previous_version ?? '', image_id: null }
    },
    succeeded: 'ready',
    failed: 'fail',
    steps: [
      {
        name: 'image',
        timeout_ms: 1_800_000,
        async run({ payload, state, signal }) {
          const { engine } = room.get(payload.database_id)
          state.image_id = await room.live.imageOf(engineOf(engine), state.version, false, signal)
        },
      },
      {
        name: 'switch',
        run: ({ payload, state, signal }) => replacement.take(payload.database_id, state, signal),
      },
    ],
  }),
]
