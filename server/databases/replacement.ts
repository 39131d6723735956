import { Fatal, type JobDefinition } from '#server/kernel/jobs/definition'
import { newId } from '#server/kernel/ids'
import { requireNoPrevious } from './changes.ts'
import { dumpStream } from './commands.ts'
import { engineOf } from './engines.ts'
import { type DatabasePayload, databaseJob, type Workroom } from './lifecycle.ts'
import { countObjects } from './spares.ts'
import type { SpareSpec } from './workload.ts'

export interface UpgradePayload extends DatabasePayload {
  version: string
}
interface UpgradeState {
  volume_id: string
  image_id: string
  /** Image of the old version, to go back to. */
  old_image_id: string | null
  counts: Record<string, number>
}

/** Puts other data in the place of a database's own: after an upgrade, a restore, or on the way back. */
export function createReplacement(room: Workroom) {
  const { db, get, change, servers, spares, live, note } = room
  return {
    /**
     * Makes a volume that holds the whole database the one of the database; what was there stays as the
     * previous one. Idempotent. Throws while another previous one is kept.
     */
    async take(
      database_id: string,
      by: { volume_id: string; version: string; image_id: string | null },
      signal: AbortSignal,
    ): Promise<void> {
      const row = get(database_id)
      if (row.volume_id !== by.volume_id) {
        if (row.previous_volume_id !== by.volume_id) requireNoPrevious(row)
        await servers.stop(by.volume_id)
        await servers.stop(row.volume_id)
        db.tx(() => {
          change(row.id, {
            ...by,
            volume_made: 1,
            previous_volume_id: row.volume_id,
            previous_version: row.version,
          })
          spares.adopt(by.volume_id)
          note(get(row.id), 'database.replaced', { volume_id: by.volume_id, previous: row.volume_id })
        })
      }
      await live.bringUp(database_id, signal)
    },
    /** Forgets the data from before. */
    async confirm(database_id: string): Promise<void> {
      const { previous_volume_id } = get(database_id)
      if (previous_volume_id === null) return
      await room.engine.removeVolume(previous_volume_id)
      change(database_id, { previous_volume_id: null, previous_version: null })
    },
    /** Forgets that there were data from before where their volume is on another machine, or gone. */
    async forgetVanished(database_id: string): Promise<void> {
      const { previous_volume_id } = get(database_id)
      if (previous_volume_id === null || (await room.engine.findVolume(previous_volume_id))) return
      change(database_id, { previous_volume_id: null, previous_version: null })
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
  const isTaken = (payload: UpgradePayload, state: UpgradeState) =>
    get(payload.database_id).volume_id === state.volume_id

  return databaseJob<UpgradePayload, UpgradeState>(room, {
    kind: 'database.upgrade',
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
          const { alias: _name, public_port: _port, ...closed } = live.specOf(get(payload.database_id))
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
          const old = await live.answering(get(payload.database_id), signal)
          if (!old) throw new Fatal('database_ended', 'The old server ended while it was copied.')
          await spares.load(spareOf(payload, state), () => dumpStream(old, signal), signal)
        },
        async undo({ payload, state }) {
          if (!isTaken(payload, state)) await spares.remove(state.volume_id)
        },
      },
      {
        name: 'verify',
        async run({ payload, state, signal }) {
          const copy = await servers.running(spareOf(payload, state))
          const counts = copy ? await countObjects(copy, signal) : {}
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
          if (!isTaken(payload, state) || previous_volume_id === null || previous_version === null) return
          const old = {
            volume_id: previous_volume_id,
            version: previous_version,
            image_id: state.old_image_id,
          }
          await replacement.take(payload.database_id, old, signal)
          await replacement.confirm(payload.database_id)
        },
      },
    ],
  })
}
const sorted = (counts: Record<string, number>) =>
  Object.fromEntries(Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1)))

/** What becomes of the data from before an upgrade or a restore. */
export const previousJobs = (room: Workroom, replacement: Replacement) => [
  databaseJob<DatabasePayload, object>(room, {
    kind: 'database.confirm',
    initial: () => ({}),
    succeeded: 'ready',
    failed: 'ready',
    steps: [{ name: 'remove', run: ({ payload }) => replacement.confirm(payload.database_id) }],
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
