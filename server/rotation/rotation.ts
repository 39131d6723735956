import type { Db } from '#server/kernel/db'
import { defineJob } from '#server/kernel/jobs/definition'
import type { Jobs } from '#server/kernel/jobs/jobs'
import type { Log } from '#server/kernel/log'
import type { SealedColumn } from '#server/kernel/module'
import type { Secrets } from '#server/kernel/secrets'
import { createSealing } from './sealing.ts'

export interface RotationOptions {
  db: Db
  jobs: Jobs
  log: Log
  secrets: Secrets
  columns: readonly SealedColumn[]
  /** Puts the new key in the place of the old one. Idempotent. */
  finish(): void
}

const KIND = 'secrets.rotate'
/** Of a million rows each is opened and sealed. */
const LONG_MS = 24 * 3_600_000
interface State {
  sealed: number
}

/**
 * Seals everything anew after the key was changed: a durable job that goes on where it was after any crash,
 * while the platform works.
 */
export function createKeyRotation({ db, jobs, log, secrets, columns, finish }: RotationOptions) {
  const sealing = createSealing({ db, secrets, columns })
  jobs.define(
    defineJob<object, State>({
      kind: KIND,
      initial: () => ({ sealed: 0 }),
      classify: (error) => ({
        kind: 'system',
        code: 'rotation_failed',
        message: (error as Error).message,
        hint: 'The old key is kept. Mend or remove the secret that cannot be read, then restart.',
        log: [],
      }),
      steps: [
        {
          name: 'seal',
          timeout_ms: LONG_MS,
          async run({ state, signal, save }) {
            await sealing.seal(signal, (count) => (state.sealed += count))
            signal.throwIfAborted()
            save()
          },
        },
        {
          name: 'verify',
          timeout_ms: LONG_MS,
          async run({ signal }) {
            const rest = await sealing.leftSoon(signal)
            signal.throwIfAborted()
            if (rest > 0) throw new Error(`${rest} secrets are still sealed with the old key.`)
          },
        },
        { name: 'finish', run: async () => finish() },
      ],
      onEnd: (_job, outcome, state) =>
        log[outcome.status === 'succeeded' ? 'info' : 'error']('The rotation of the secret key ended', {
          status: outcome.status,
          sealed: state.sealed,
        }),
    }),
  )
  return {
    /** Queues the job when the key was changed and none is at work. */
    start(): void {
      if (!secrets.is_rotating) return
      const known = jobs.findBySubject(secrets.key_id)
      if (known && ['queued', 'running', 'undoing'].includes(known.status)) return
      jobs.enqueue({
        kind: KIND,
        payload: {},
        lane: KIND,
        subject: secrets.key_id,
        project_id: null,
      })
    },
    left: sealing.left,
  }
}
export type KeyRotation = ReturnType<typeof createKeyRotation>
