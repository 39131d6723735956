import { own } from '#server/kernel/own'
import type { Db } from '#server/kernel/db'
import type { SealedColumn } from '#server/kernel/module'
import type { Secrets } from '#server/kernel/secrets'

/** Rows that are looked at, and sealed, in one piece. */
const BATCH = 100

/**
 * Seals everything anew that an earlier key sealed: batch by batch, so that it goes on where it was after any
 * crash. A batch begins behind the one before: each from the beginning of the table would look through all that is
 * done already, of which there may be a million rows.
 */
type Row = Record<string, string | null>
export function createSealing({
  db,
  secrets,
  columns,
}: {
  db: Db
  secrets: Secrets
  columns: readonly SealedColumn[]
}) {
  const isOld = (column: string) => `${column} LIKE 'v1.%' AND ${column} NOT LIKE 'v1.${secrets.key_id}.%'`
  const keyOf = (one: SealedColumn, row: Row) => one.key.map((name) => own(row, name))
  /** The next rows of a table by their keys, with what an earlier key sealed. */
  const nextRows = (one: SealedColumn, last: Row | undefined): Row[] => {
    const key = one.key.join(', ')
    const behind = last ? `WHERE (${key}) > (${one.key.map(() => '?').join(', ')})` : ''
    return db
      .sql(
        `SELECT ${key}, CASE WHEN ${isOld(one.column)} THEN ${one.column} END AS sealed FROM ${one.table}
         ${behind} ORDER BY ${key} LIMIT ${BATCH}`,
      )
      .all(...(last ? keyOf(one, last) : [])) as Row[]
  }
  /** Hands every row on in batches, between which other requests take their turn; each is one transaction. */
  async function eachBatch(
    signal: AbortSignal,
    work: (one: SealedColumn, old: Row[]) => void,
  ): Promise<void> {
    for (const one of columns) {
      let last: Row | undefined
      do {
        if (signal.aborted) return
        last = db.tx(() => {
          const rows = nextRows(one, last)
          work(
            one,
            rows.filter(({ sealed }) => sealed !== null),
          )
          return rows[BATCH - 1]
        })
        await new Promise((resolve) => setImmediate(resolve))
      } while (last)
    }
  }
  /** What does not open stays as it is and fails the job, so that the old key is never thrown away. */
  function sealRows(one: SealedColumn, rows: readonly Row[]): void {
    const where = one.key.map((name) => `${name} = ?`).join(' AND ')
    for (const row of rows) {
      const context = one.context(row as Record<string, string>)
      db.sql(`UPDATE ${one.table} SET ${one.column} = ? WHERE ${where}`).run(
        secrets.seal(secrets.open(row.sealed!, context), context),
        ...keyOf(one, row),
      )
    }
  }
  return {
    /** How much is still sealed with an earlier key, looked through in one go. */
    left: (): number =>
      columns.reduce(
        (sum, { table, column }) =>
          sum +
          (db
            .sql(`SELECT count(*) FROM ${table} WHERE ${isOld(column)}`)
            .pluck()
            .get() as number),
        0,
      ),
    /** The same, with others served meanwhile. */
    async leftSoon(signal: AbortSignal): Promise<number> {
      let count = 0
      await eachBatch(signal, (_one, { length }) => (count += length))
      return count
    },
    /**
     * Seals all of it, or as much as there is time for before `signal` aborts; `told` hears how many values
     * each batch had.
     */
    async seal(signal: AbortSignal, told: (count: number) => void): Promise<void> {
      await eachBatch(signal, (one, rows) => {
        sealRows(one, rows)
        db.afterCommit(() => told(rows.length))
      })
    },
  }
}
