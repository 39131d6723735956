/** Runs `work` for every item, at most `limit` at a time, in the order given. Fails only after all have ended. */
export async function pool<T>(items: readonly T[], limit: number, work: (item: T) => Promise<void>): Promise<void> {
  const waiting = [...items]
  const worker = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await work(item)
  }
  const ended = await Promise.allSettled(Array.from({ length: Math.min(limit, items.length) }, worker))
  for (const end of ended) if (end.status === 'rejected') throw end.reason
}
