import type { Db } from '#server/kernel/db'

/** How SQLite would find the rows of each statement that `work` prepares: one text of lines for each. */
export function plansOf(db: Db, work: () => unknown): string[] {
  const { sql } = db
  const texts = new Set<string>()
  db.sql = (text) => {
    texts.add(text)
    return sql(text)
  }
  try {
    work()
  } finally {
    db.sql = sql
  }
  return [...texts].map((text) => {
    const names = [...text.matchAll(/@(\w+)/g)].map(([, name]) => [name!, null])
    const unnamed = (text.match(/\?/g) ?? []).map(() => null)
    const rows = db.raw
      .prepare(`EXPLAIN QUERY PLAN ${text}`)
      .all(...(names.length > 0 ? [Object.fromEntries(names)] : unnamed)) as { detail: string }[]
    return rows.map(({ detail }) => detail).join('\n')
  })
}
