import type { Db } from '#server/kernel/db'

/** The text of each statement that was asked for while some work went on, in their order. */
export async function statementsDuring(db: Db, work: () => Promise<unknown>): Promise<string[]> {
  const { sql } = db
  const texts: string[] = []
  db.sql = (text) => {
    texts.push(text)
    return sql(text)
  }
  try {
    await work()
  } finally {
    db.sql = sql
  }
  return texts
}
