/** Rows in the page at once, so that a thousand of them stay smooth. */
const PER_PAGE = 100

/** A page of rows that are all known, in the shape of a list of the API. */
export function pageOf<Row>(rows: readonly Row[] | undefined, page: number) {
  if (!rows) return undefined
  const data = rows.slice((page - 1) * PER_PAGE, page * PER_PAGE)
  return { data, total: rows.length, pages: Math.max(1, Math.ceil(rows.length / PER_PAGE)) }
}
