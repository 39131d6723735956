import * as v from 'valibot'
import { createPace } from '#server/kernel/pace'
import { withoutSecrets } from './secret-answers.ts'

/** Rows that are worked on in one go; a page of nearly every list has no more. */
const AT_ONCE = 100

/** The long list of an answer: the lines of a log may be thousands, and megabytes. */
function longListOf(answer: unknown): unknown[] | undefined {
  const rows = (answer as { data?: unknown } | null | undefined)?.data
  return Array.isArray(rows) && rows.length > AT_ONCE ? rows : undefined
}
function* partsOf(rows: readonly unknown[]): Generator<unknown[]> {
  for (let from = 0; from < rows.length; from += AT_ONCE) yield rows.slice(from, from + AT_ONCE)
}

/**
 * An answer as its schema lets it out, so that a column that is not listed cannot leave. That of a long list is made
 * in parts, with others served in between.
 */
export async function shownAnswer(
  schema: v.GenericSchema,
  answer: unknown,
  { is_narrowed, owner }: { is_narrowed: boolean; owner: string },
): Promise<unknown> {
  const make = (part: unknown): unknown => {
    const shown: unknown = v.parse(schema, part)
    return is_narrowed ? withoutSecrets(schema, shown) : shown
  }
  const rows = longListOf(answer)
  if (!rows) return make(answer)
  const pace = createPace(owner)
  const shown: unknown[] = []
  let last: unknown
  for (const part of partsOf(rows)) {
    last = make({ ...(answer as object), data: part })
    shown.push(...(last as { data: unknown[] }).data)
    const rest = pace.rest()
    if (rest) await rest
  }
  return { ...(last as object), data: shown }
}

/** The bytes of an answer as JSON, in parts as well. */
export async function writeAnswer(answer: unknown, owner: string): Promise<Buffer> {
  const rows = longListOf(answer)
  if (!rows) return Buffer.from(JSON.stringify(answer))
  const pace = createPace(owner)
  const written: Buffer[] = []
  const write = (text: string) => void written.push(Buffer.from(text))
  let before = '{'
  for (const [key, value] of Object.entries(answer as object)) {
    if (value === undefined) continue
    write(`${before}${JSON.stringify(key)}:`)
    before = ','
    if (value !== rows) {
      write(JSON.stringify(value))
      continue
    }
    let bracket = '['
    for (const part of partsOf(rows)) {
      write(`${bracket}${JSON.stringify(part).slice(1, -1)}`)
      bracket = ','
      const rest = pace.rest()
      if (rest) await rest
    }
    write(']')
  }
  write('}')
  return Buffer.concat(written)
}
