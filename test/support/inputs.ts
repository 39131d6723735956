import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './routes.ts'

/** One input that an endpoint must refuse, or must accept. */
export interface InputCase {
  /**
   * Dotted field of the body, a query parameter, `id` of the path, `header.<name>`, or `$body` for the whole.
   */
  field: string
  value: unknown
  why: string
  expect_status: number | number[]
  /** `POST /api/apps`. */
  endpoint: string
  expect_code?: string
}
export const readInputs = (name: 'inputs-bad' | 'inputs-good'): InputCase[] =>
  JSON.parse(readFileSync(join(ROOT, `test/fixtures/${name}.json`), 'utf8')) as InputCase[]

/** Writes out what a file of inputs abbreviates: `{ $repeat: ['a', 3] }`, `{ $concat: […] }`. */
export function expand(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(expand)
  const record = value as Record<string, unknown>
  if (Array.isArray(record.$repeat))
    return String(expand(record.$repeat[0])).repeat(record.$repeat[1] as number)
  if (Array.isArray(record.$concat)) return record.$concat.map((part) => String(expand(part))).join('')
  return Object.fromEntries(Object.entries(record).map(([key, inner]) => [key, expand(inner)]))
}

/** A copy of `base` with a dotted field set. */
export function withField(
  base: Record<string, unknown>,
  path: string,
  value: unknown,
): Record<string, unknown> {
  const [first = '', ...rest] = path.split('.')
  const inner =
    rest.length === 0
      ? value
      : withField((base[first] ?? {}) as Record<string, unknown>, rest.join('.'), value)
  return { ...base, [first]: inner }
}

/** The body that `$body` describes, as it is sent. */
export function wholeBody(value: Record<string, unknown>): string {
  if (typeof value.$raw === 'string') return value.$raw
  if (typeof value.$size === 'number') return `{"name":"${'a'.repeat(value.$size - 11)}"}`
  return `${typeof value.$raw_prefix === 'string' ? value.$raw_prefix : ''}${JSON.stringify(expand(value.$json))}`
}
