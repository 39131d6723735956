import * as v from 'valibot'
import { FAILURES } from './failures.ts'
import { type Sort, type Span, sortRows } from './page.ts'

/** A time, ISO 8601 UTC with milliseconds. */
export const Timestamp = v.pipe(
  v.string(),
  v.description('ISO 8601 UTC with milliseconds.'),
  v.examples(['2026-01-31T12:00:00.000Z']),
  v.metadata({ format: 'date-time' }),
)
/** Why a deployment or another job failed. A record of a later version may have a word that is not here yet. */
export const FailureWord = v.pipe(
  v.string(),
  v.description(
    `Stable word for the cause. ${Object.entries(FAILURES)
      .map(([word, text]) => `\`${word}\`: ${text}`)
      .join(' ')}`,
  ),
  v.examples(['build_failed']),
  v.metadata({ enum: Object.keys(FAILURES) }),
  v.title('FailureCode'),
)
/**
 * Whether a text in the form of a time is one. An offset of hours alone has the form, and cannot be read; what an
 * offset moves beyond the year 9999, or before the year 0, would not be shown as other times are.
 */
function isReadableTime(text: string): boolean {
  const time = new Date(text)
  return !Number.isNaN(time.getTime()) && /^\d{4}-/.test(time.toISOString())
}
const NO_TIME = 'must be a time such as 2026-11-22T12:00:00Z.'
/**
 * A time that a request names, in any offset. It becomes what answers show, so that whatever compares times as texts
 * compares moments.
 */
export const GivenTime = v.pipe(
  v.string(),
  v.isoTimestamp(NO_TIME),
  v.check(isReadableTime, NO_TIME),
  v.transform((text) => new Date(text).toISOString()),
)

/**
 * Marks a field as a secret, in the API's description too: clients hide it, and a test follows every marked
 * one through the product.
 */
export const SECRET = v.metadata<string, { readonly format: 'password' }>({ format: 'password' })

/** Marks a dictionary by the names of variables: the texts in it may be as large as a request. */
export const ofVariables = <T>() => v.metadata<T, { readonly maxProperties: number }>({ maxProperties: 2000 })

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
  /** The order that was asked for, where the list offers a choice. */
  sort?: Sort | undefined
}
export const PagingQuery = v.strictObject(pagingEntries)

/** Values of one filter that a request may name. */
const MAX_VALUES = 20

/**
 * A filter of a list that takes one value or several: `status=running,failed`, or the parameter once for each.
 * The query's reader makes a list of them all.
 */
export const several = <S extends v.GenericSchema<string, string>>(value: S, description?: string) =>
  v.optional(
    v.pipe(
      v.array(value),
      v.maxLength(MAX_VALUES),
      v.description(description ?? 'Only those with one of these values.'),
    ),
  )
/** A filter by ids. */
export const severalIds = (description: string) => several(v.pipe(v.string(), v.maxLength(64)), description)

/**
 * `sort` of a list: fields by their weight, with `-` before those that go from the largest to the smallest.
 * `columns` maps fields to columns of other names.
 */
export function sorting<const F extends string>(
  fields: readonly F[],
  usual = 'Newest first.',
  columns: Partial<Record<F, string>> = {},
) {
  const choices = fields.flatMap((field): (F | `-${F}`)[] => [field, `-${field}`])
  return v.optional(
    v.pipe(
      v.array(v.picklist(choices)),
      v.maxLength(3),
      v.description(
        `Order: fields by their weight, \`-\` before one for descending, e.g. \`sort=-${fields[0]}\`. Without it: ${usual}`,
      ),
      v.transform(
        (asked): Sort =>
          asked.map((one) => {
            const field = one.replace(/^-/, '') as F
            return { column: columns[field] ?? field, descending: one.startsWith('-') }
          }),
      ),
    ),
  )
}

/** Query of a list that can be ordered and nothing else. */
export const sortedPaging = <const F extends string>(...order: Parameters<typeof sorting<F>>) =>
  v.strictObject({ ...pagingEntries, sort: sorting(...order) })

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
/** The page of a list that is at hand as a whole. */
export const pageOf = <T extends object>(rows: readonly T[], paging: Paging) => {
  const begin = (paging.page - 1) * paging.per_page
  const ordered = sortRows(rows, paging.sort)
  return paged({ rows: ordered.slice(begin, begin + paging.per_page), total: rows.length }, paging)
}
/** LIMIT and OFFSET of a page, and its order. */
export const limits = (paging: Paging): Span => [
  paging.per_page,
  (paging.page - 1) * paging.per_page,
  paging.sort,
]
