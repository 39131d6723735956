import { own } from '#server/kernel/own'
import type { Db } from '#server/kernel/db'
import type { SealedColumn } from '#server/kernel/module'
import type { Secrets } from '#server/kernel/secrets'

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
          ...one.key.map((name) => own(row, name)),
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
