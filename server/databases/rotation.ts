import { setTimeout as wait } from 'node:timers/promises'
import { Fatal } from '#server/kernel/jobs/definition'
import { requireSuccess } from './commands.ts'
import { type DatabasePayload, databaseJob, type Workroom } from './lifecycle.ts'
import type { DatabaseInstance } from './instance.ts'

interface RotationState {
  /** What to wait for, by app; absent until it was asked for. */
  refreshed: Record<string, string | null>
}
const PAUSE_MS = 250

/**
 * New credentials without a gap: they are made valid beside the old ones, handed out, taken up by every linked
 * app, and only then the old ones end. Where an app does not follow, both stay valid and the next rotation goes
 * on from there.
 */
export function rotationJob(room: Workroom) {
  const { get, change, vault, ports } = room
  /** One that was killed is started here: while this job is under way nobody else sees to it. */
  const server = (id: string, signal: AbortSignal): Promise<DatabaseInstance> => room.live.bringUp(id, signal)
  const users = (id: string): string[] => {
    const row = get(id)
    const previous = vault.previous(row)
    return previous ? ports.appsHolding(row.project_id, previous.password) : []
  }

  return databaseJob<DatabasePayload, RotationState>(room, {
    kind: 'database.rotate',
    initial: () => ({ refreshed: {} }),
    succeeded: 'ready',
    failed: 'ready',
    steps: [
      {
        name: 'grant',
        async run({ payload, signal, skip }) {
          const row = get(payload.database_id)
          const next = vault.next(row)
          // Handed out already: an earlier rotation did not come to its end.
          if (!next) return skip()
          const { engine, ...instance } = await server(row.id, signal)
          const login = await instance.run(engine.login(next), {}, signal)
          if (login.exit_code !== 0)
            await requireSuccess(
              { engine, ...instance },
              engine.set_password(next, vault.current(row)),
              signal,
            )
        },
      },
      {
        name: 'publish',
        async run({ payload, skip }) {
          const row = get(payload.database_id)
          if (row.next_password === null) return skip()
          const current = vault.open(row, 'password')
          change(row.id, {
            password: vault.seal(row.id, 'password', vault.open(row, 'next_password')),
            next_password: null,
            previous_password: vault.seal(row.id, 'previous_password', current),
            generation: row.generation + 1,
          })
        },
      },
      {
        name: 'apps',
        timeout_ms: 3_600_000,
        async run({ payload, state, save, signal }) {
          for (const app_id of users(payload.database_id)) {
            if (Object.hasOwn(state.refreshed, app_id)) continue
            state.refreshed[app_id] = ports.refreshApp(app_id) ?? null
            save()
          }
          for (const [app_id, reference] of Object.entries(state.refreshed)) {
            if (reference === null) continue
            let ended = ports.refreshed(reference)
            while (ended === undefined) {
              await wait(PAUSE_MS, undefined, { signal })
              ended = ports.refreshed(reference)
            }
            if (ended === 'failed')
              throw new Fatal(
                'app_behind',
                `${ports.app(app_id)?.name ?? app_id} could not be started with the new credentials, so the old ones stay valid.`,
                'Look at its last deployment, then rotate again: that goes on from here.',
              )
          }
        },
      },
      {
        name: 'revoke',
        async run({ payload, signal }) {
          const row = get(payload.database_id)
          const previous = vault.previous(row)
          if (!previous) return
          // Stopped apps and releases that one can go back to: with the old ones they could not start.
          await ports.replaceCredentials(row.project_id, previous, vault.current(row))
          const instance = await server(row.id, signal)
          await requireSuccess(instance, instance.engine.revoke(vault.current(row), previous), signal)
          change(row.id, { previous_password: null })
        },
      },
    ],
  })
}
