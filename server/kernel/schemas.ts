import * as v from 'valibot'

/** A time, ISO 8601 UTC with milliseconds. */
export const Timestamp = v.pipe(
  v.string(),
  v.description('ISO 8601 UTC with milliseconds.'),
  v.examples(['2026-01-31T12:00:00.000Z']),
  v.metadata({ format: 'date-time' }),
)

/**
 * Marks a field as a secret, in the API's description too: clients hide it, and a test follows every marked
 * one through the product.
 */
export const SECRET = v.metadata<string, { readonly format: 'password' }>({ format: 'password' })

/** What answers show instead of a secret that is set. */
export const MASK = '********'

/** `page` and `per_page` of every list. Source: spec.md section 4 "Pagination". */
export const pagingEntries = {
  page: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.description('Page, starting at 1.')), 1),
  per_page: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(1),
      v.description('Items per page; more than 100 is served as 100.'),
      v.metadata({ maximum: 100 }),
      v.transform((n: number) => Math.min(n, 100)),
    ),
    20,
  ),
}
export interface Paging {
  page: number
  per_page: number
}
export const PagingQuery = v.strictObject(pagingEntries)

/** Path parameter `id`. Any text: a malformed id is answered like an unknown one. */
export const IdParam = v.object({
  id: v.pipe(v.string(), v.description('Identifier of the resource.')),
})

/** Envelope of a single result. */
export const data = <S extends v.GenericSchema>(schema: S) => v.object({ data: schema })

/** Envelope of a list. */
export const list = <S extends v.GenericSchema>(schema: S) =>
  v.object({
    data: v.array(schema),
    total: v.pipe(v.number(), v.integer(), v.description('All items that match.')),
    page: v.pipe(v.number(), v.integer(), v.description('This page; the first is 1.')),
    per_page: v.pipe(v.number(), v.integer(), v.description('Items on a full page.')),
    pages: v.pipe(v.number(), v.integer(), v.description('Number of pages.')),
  })

/** Answer of every DELETE. */
export const Deleted = v.pipe(v.object({ id: v.string(), deleted: v.literal(true) }), v.title('Deleted'))
export const deleted = (id: string) => ({ data: { id, deleted: true as const } })

/** Puts a page of rows into the list envelope. */
export function paged<T>(page: { rows: T[]; total: number }, paging: Paging) {
  return {
    data: page.rows,
    total: page.total,
    page: paging.page,
    per_page: paging.per_page,
    pages: Math.ceil(page.total / paging.per_page),
  }
}
/** LIMIT and OFFSET of a page. */
export const limits = (paging: Paging): [limit: number, offset: number] => [
  paging.per_page,
  (paging.page - 1) * paging.per_page,
]
