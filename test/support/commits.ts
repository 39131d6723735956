import type { Db } from '#server/kernel/db'

/**
 * How many transactions were committed in each round of the event loop while some work went on,
 * where there were any: each waits for the disk, and everybody for it. What is written without a
 * transaction is one of its own.
 */
export async function commitsDuring(db: Db, work: () => Promise<unknown>): Promise<number[]> {
  const { tx, sql } = db
  const rounds: number[] = []
  let count = 0
  const note = () => {
    count += 1
    if (count > 1) return
    setImmediate(() => {
      rounds.push(count)
      count = 0
    })
  }
  db.tx = (fn) => {
    if (!db.raw.inTransaction) note()
    return tx(fn)
  }
  db.sql = (text) => {
    if (!/^\s*(INSERT|UPDATE|DELETE)/i.test(text) || db.raw.inTransaction) return sql(text)
    note()
    return sql(text)
  }
  try {
    await work()
    await new Promise((resolve) => setImmediate(resolve))
  } finally {
    Object.assign(db, { tx, sql })
  }
  return rounds
}
