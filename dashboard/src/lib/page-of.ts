/** Rows in the page at once: few enough that drawing them is not felt. */
const PER_PAGE = 50

/**
 * A page of rows, in the shape of a list of the API; undefined while rows of it are still to come.
 * @param rows those that are known, from the first one on.
 * @param total how many there are in all; absent when all are known.
 */
export function pageOf<Row>(rows: readonly Row[] | undefined, page: number, total = rows?.length ?? 0) {
  if (!rows) return undefined
  const from = (page - 1) * PER_PAGE
  const data = rows.slice(from, from + PER_PAGE)
  if (data.length < Math.min(PER_PAGE, total - from)) return undefined
  return { data, total, pages: Math.max(1, Math.ceil(total / PER_PAGE)) }
}
