import type { Db } from '#server/kernel/db'
import type { Secrets } from '#server/kernel/secrets'

/**
 * A column whose values are sealed: every such column must be listed, or a rotation would leave it
 * unreadable.
 */
export interface SealedColumn {
  table: string
  column: string
  /** Columns that name the row. */
  key: readonly string[]
  /** What the value was sealed for. */
  context(row: Record<string, string>): string
}
const BATCH = 100

/**
 * Seals everything anew that an earlier key sealed: batch by batch, so that it goes on where it was after any
 * crash.
 */
export function createSealing({
  db,
  secrets,
  columns,
}: {
  db: Db
  secrets: Secrets
  columns: readonly SealedColumn[]
}) {
  const old = ({ table, column }: SealedColumn) =>
    `FROM ${table} WHERE ${column} LIKE 'v1.%' AND ${column} NOT LIKE 'v1.${secrets.key_id}.%'`
  /**
   * One batch in one transaction; what does not open stays as it is and fails the job, so that the old key is
   * never thrown away.
   */
  const sealBatch = (one: SealedColumn): number =>
    db.tx(() => {
      const rows = db
        .sql(`SELECT ${one.key.join(', ')}, ${one.column} AS sealed ${old(one)} LIMIT ${BATCH}`)
        .all() as Record<string, string>[]
      const where = one.key.map((name) => `${name} = ?`).join(' AND ')
      for (const row of rows) {
        const context = one.context(row)
        db.sql(`UPDATE ${one.table} SET ${one.column} = ? WHERE ${where}`).run(
          secrets.seal(secrets.open(row.sealed!, context), context),
          ...one.key.map((name) => row[name]),
        )
      }
      return rows.length
    })
  const left = () =>
    columns.reduce(
      (sum, one) =>
        sum +
        (db
          .sql(`SELECT count(*) ${old(one)}`)
          .pluck()
          .get() as number),
      0,
    )
  return {
    left,
    /**
     * Seals all of it, or as much as there is time for before `signal` aborts; `told` hears how many values
     * each batch had.
     */
    async seal(signal: AbortSignal, told: (count: number) => void): Promise<void> {
      for (const one of columns) {
        for (let size = BATCH; size === BATCH && !signal.aborted; ) {
          size = sealBatch(one)
          told(size)
          // Other requests take their turn between batches.
          await new Promise((resolve) => setImmediate(resolve))
        }
      }
    },
  }
}

const byId = (table: string, column: string): SealedColumn => ({
  table,
  column,
  key: ['id'],
  context: ({ id }) => `${table}/${column}/${id}`,
})

/** Every sealed column of the database. A test compares this list with what the code seals. */
export const SEALED_COLUMNS: readonly SealedColumn[] = [
  byId('users', 'totp_seed'),
  byId('users', 'totp_pending'),
  byId('ssh_keys', 'private_key'),
  byId('git_credentials', 'token'),
  byId('registries', 'password'),
  byId('releases', 'environment'),
  byId('releases', 'variables'),
  byId('variables', 'value'),
  byId('variables', 'preview_value'),
  byId('certificates', 'private_key'),
  byId('certificates', 'next_key'),
  ...(['private_key', 'next_key'] as const).map(
    (column): SealedColumn => ({
      table: 'acme_accounts',
      column,
      key: ['directory_url'],
      context: ({ directory_url }) => `acme_accounts/${column}/${directory_url}`,
    }),
  ),
  {
    table: 'settings',
    column: 'secrets',
    key: ['section'],
    context: ({ section }) => `settings/secrets/${section}`,
  },
  {
    table: 'idempotency',
    column: 'answer',
    key: ['scope', 'key'],
    context: ({ scope, key }) => `idempotency/answer/${scope}/${key}`,
  },
  { table: 'meta', column: 'value', key: ['key'], context: ({ key }) => `meta/${key}` },
]
