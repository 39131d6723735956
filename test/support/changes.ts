import type { Db } from '#server/kernel/db'

/** How many rows were changed at most, while some work went on, without others being served in between. */
export async function mostChangedAtOnce(db: Db, work: () => Promise<unknown>): Promise<number> {
  const changes = () => db.sql('SELECT total_changes()').pluck().get() as number
  let [most, last] = [0, changes()]
  const look = (): void => {
    const now = changes()
    most = Math.max(most, now - last)
    last = now
    next = setImmediate(look)
  }
  let next = setImmediate(look)
  try {
    await work()
  } finally {
    clearImmediate(next)
  }
  return Math.max(most, changes() - last)
}
