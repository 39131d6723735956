import type { Db } from '#server/kernel/db'
import { defineJob } from '#server/kernel/jobs/definition'
import type { Jobs } from '#server/kernel/jobs/jobs'
import type { Log } from '#server/kernel/log'
import type { Secrets } from '#server/kernel/secrets'

/** A column whose values are sealed: every such column must be listed, or a rotation would leave it unreadable. */
export interface SealedColumn {
  table: string
  column: string
  /** Columns that name the row. */
  key: readonly string[]
  /** What the value was sealed for. */
  context(row: Record<string, string>): string
}
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
const BATCH = 100
interface State { sealed: number }

/** Seals everything anew after the key was changed: a durable job that goes on where it was after any crash, while the platform works. */
export function createKeyRotation({ db, jobs, log, secrets, columns, finish }: RotationOptions) {
  const old = ({ table, column }: SealedColumn) => `FROM ${table} WHERE ${column} LIKE 'v1.%' AND ${column} NOT LIKE 'v1.${secrets.key_id}.%'`
  /** One batch in one transaction; what does not open stays as it is and fails the job, so that the old key is never thrown away. */
  const sealBatch = (one: SealedColumn): number => db.tx(() => {
    const rows = db.sql(`SELECT ${one.key.join(', ')}, ${one.column} AS sealed ${old(one)} LIMIT ${BATCH}`).all() as Record<string, string>[]
    const where = one.key.map((name) => `${name} = ?`).join(' AND ')
    for (const row of rows) {
      const context = one.context(row)
      db.sql(`UPDATE ${one.table} SET ${one.column} = ? WHERE ${where}`).run(secrets.seal(secrets.open(row.sealed!, context), context), ...one.key.map((name) => row[name]))
    }
    return rows.length
  })
  const left = () => columns.reduce((sum, one) => sum + (db.sql(`SELECT count(*) ${old(one)}`).pluck().get() as number), 0)
  jobs.define(defineJob<object, State>({
    kind: KIND,
    initial: () => ({ sealed: 0 }),
    classify: (error) => ({ kind: 'system', code: 'rotation_failed', message: (error as Error).message, hint: 'The old key is kept. Mend or remove the secret that cannot be read, then restart.', log: [] }),
    steps: [
      {
        name: 'seal',
        async run({ state, signal, save }) {
          for (const one of columns) {
            for (let size = BATCH; size === BATCH && !signal.aborted; ) {
              size = sealBatch(one)
              state.sealed += size
              // Other requests take their turn between batches.
              await new Promise((resolve) => setImmediate(resolve))
            }
          }
          signal.throwIfAborted()
          save()
        },
      },
      {
        name: 'verify',
        async run() {
          const rest = left()
          if (rest > 0) throw new Error(`${rest} secrets are still sealed with the old key.`)
        },
      },
      { name: 'finish', run: async () => finish() },
    ],
    onEnd: (_job, outcome, state) => log[outcome.status === 'succeeded' ? 'info' : 'error']('The rotation of the secret key ended', { status: outcome.status, sealed: state.sealed }),
  }))
  return {
    /** Queues the job when the key was changed and none is at work. */
    start(): void {
      if (!secrets.is_rotating) return
      const known = jobs.findBySubject(secrets.key_id)
      if (known && ['queued', 'running', 'undoing'].includes(known.status)) return
      jobs.enqueue({ kind: KIND, payload: {}, lane: KIND, subject: secrets.key_id, project_id: null })
    },
    left,
  }
}
export type KeyRotation = ReturnType<typeof createKeyRotation>

const byId = (table: string, column: string): SealedColumn => ({ table, column, key: ['id'], context: ({ id }) => `${table}/${column}/${id}` })

/** Every sealed column of the database. A test compares this list with what the code seals. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  byId('users', 'totp_seed'),
  byId('users', 'totp_pending'),
  byId('ssh_keys', 'private_key'),
  byId('git_credentials', 'token'),
  byId('registries', 'password'),
  byId('releases', 'environment'),
  byId('certificates', 'private_key'),
  byId('certificates', 'next_key'),
  ...(['private_key', 'next_key'] as const).map((column): SealedColumn => ({ table: 'acme_accounts', column, key: ['directory_url'], context: ({ directory_url }) => `acme_accounts/${column}/${directory_url}` })),
  { table: 'settings', column: 'secrets', key: ['section'], context: ({ section }) => `settings/secrets/${section}` },
  { table: 'idempotency', column: 'answer', key: ['scope', 'key'], context: ({ scope, key }) => `idempotency/answer/${scope}/${key}` },
  { table: 'meta', column: 'value', key: ['key'], context: ({ key }) => `meta/${key}` },
]
