import { answerOf } from './client.ts'

/** One answer of a list. */
export interface Page<Row> {
  data: Row[]
  /** Rows of the whole list. */
  total: number
  pages: number
}
/** Most rows that the API gives in one answer. */
export const PER_PAGE = 100

/** All rows of a list: the first page says how many there are, and the others are asked for together. */
export async function everyPage<Row>(
  ask: (page: number) => Promise<{ data?: Page<Row> }>,
  onFirst?: (page: Page<Row>) => void,
): Promise<Row[]> {
  const first = await answerOf(ask(1))
  onFirst?.(first)
  const others = Array.from({ length: first.pages - 1 }, (_, at) => answerOf(ask(at + 2)))
  return [first, ...(await Promise.all(others))].flatMap(({ data }) => data)
}

/** The same as one long answer, for `useRead`. */
export async function wholeList<Row>(
  ask: (query: { page: number; per_page: number }) => Promise<{ data?: Page<Row> }>,
): Promise<{ data: Page<Row> }> {
  const data = await everyPage((page) => ask({ page, per_page: PER_PAGE }))
  return { data: { data, total: data.length, pages: 1 } }
}
