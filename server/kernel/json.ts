import * as v from 'valibot'

const MAX_DEPTH = 32
/**
 * Texts, numbers, lists and objects in one text, together: what a megabyte of `[1,1,1…]` costs is a hundred
 * times what its bytes cost, and no resource of the API has as many.
 */
const MAX_VALUES = 30_000

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const [LIST, LIST_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d]

/** A JSON text that is well formed, and still nothing that an honest client sends. */
export class JsonError extends Error {}

/** Marks that may belong to one value: the comma or brackets around it, its quotes, and its key with quotes and colon. */
const MARKS_OF_VALUE = 8
/**
 * What means nothing between marks, and what means nothing within a string. Expressions find their end: 8 MiB of
 * blanks, looked at one by one, took a third of a second.
 */
const BETWEEN_MARKS = /[^"[\]{},:]*/gy
/** Bounded, since every repetition is remembered: there is no room for millions of escapes. */
const WITHIN_STRING = /(?:[^"\\]+|\\[^]){0,1000}/gy

/** The place behind what an expression takes from a place on. */
function behind(expression: RegExp, text: string, from: number): number {
  // Beyond its end an expression begins anew.
  if (from >= text.length) return text.length
  expression.lastIndex = from
  expression.test(text)
  return expression.lastIndex
}

/** The last quote of a string whose first is in front of a place. */
function endOfString(text: string, from: number): number {
  let [at, next] = [from, behind(WITHIN_STRING, text, from)]
  while (next > at) [at, next] = [next, behind(WITHIN_STRING, text, next)]
  return at
}

/**
 * Keys that are written in a text: one for each colon outside of its strings. Refuses very deep nesting and a
 * great many values before anything is made of them. What is no JSON is counted somehow.
 */
function countWrittenKeys(text: string, most_values: number): number {
  let [keys, values, depth, marks] = [0, 1, 0, 0]
  for (let at = behind(BETWEEN_MARKS, text, 0); at < text.length; at = behind(BETWEEN_MARKS, text, at + 1)) {
    const char = text.charCodeAt(at)
    marks += 1
    if (char === QUOTE) at = endOfString(text, at + 1)
    else if (char === COLON) keys += 1
    else if (char === COMMA) values += 1
    else if (char === LIST_END || char === OBJECT_END) depth -= 1
    else if (char === LIST || char === OBJECT) {
      values += 1
      depth += 1
    }
    if (depth > MAX_DEPTH) throw new JsonError(`The JSON is nested deeper than ${MAX_DEPTH} levels.`)
    if (values > most_values || marks > MARKS_OF_VALUE * most_values)
      throw new JsonError(`The JSON holds more than ${most_values} values.`)
  }
  return keys
}

/** Keys that a value has at all levels; refuses those that reach into prototypes. */
function countKeys(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const inside: unknown[] = Object.values(value)
  if (!Array.isArray(value) && Object.hasOwn(value, '__proto__'))
    throw new JsonError('The JSON has a key that is not allowed.')
  return inside.reduce<number>(
    (keys, inner) => keys + countKeys(inner),
    Array.isArray(value) ? 0 : inside.length,
  )
}

/**
 * Parses a JSON text of somebody else. A key that is given twice is refused: what stands in front may have
 * read the other one. Throws JsonError, or SyntaxError for what is no JSON.
 */
export function parseForeignJson(text: string, most_values = MAX_VALUES): unknown {
  const written = countWrittenKeys(text, most_values)
  const value: unknown = JSON.parse(text)
  if (countKeys(value) !== written)
    throw new JsonError('The JSON has an object with a key that is given twice.')
  return value
}

/**
 * A value of somebody else as far as it has a shape; undefined where it has not. The first fault ends the reading: to
 * word those of a hundred kilobytes of `{},{}…` takes most of a second.
 */
export function shaped<Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
): v.InferOutput<Schema> | undefined {
  const { success, output } = v.safeParse(schema, value, { abortEarly: true })
  return success ? output : undefined
}
