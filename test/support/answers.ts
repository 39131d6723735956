import type { Db } from '#server/kernel/db'

/** Characters of the largest answer of the database while some work went on. */
export async function largestAnswer(db: Db, work: () => Promise<unknown>): Promise<number> {
  const { sql } = db
  let most = 0
  const measure = (answer: unknown) => {
    most = Math.max(most, JSON.stringify(answer ?? null).length)
    return answer
  }
  db.sql = (text) => {
    const watched: ReturnType<Db['sql']> = new Proxy(sql(text), {
      get(statement, name) {
        const value = Reflect.get(statement, name) as unknown
        if (typeof value !== 'function') return value
        return (...given: unknown[]) => {
          const answer = Reflect.apply(value, statement, given) as unknown
          if (answer === statement) return watched
          return name === 'all' || name === 'get' ? measure(answer) : answer
        }
      },
    })
    return watched
  }
  try {
    await work()
  } finally {
    db.sql = sql
  }
  return most
}
