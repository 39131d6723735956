import { answerOf } from './client.ts'

interface Page<T> {
  data: T[]
  pages: number
}

/** One thing of which the API has lists only: their pages are gone through. Null where it is in none. */
export async function findById<T extends { id: string }>(
  id: string,
  ask: (query: { page: number; per_page: number }) => Promise<{ data?: Page<T> }>,
): Promise<T | null> {
  for (let page = 1; ; page++) {
    const { data, pages } = await answerOf(ask({ page, per_page: 100 }))
    const found = data.find((one) => one.id === id)
    if (found || page >= pages) return found ?? null
  }
}
