import * as v from 'valibot'
import { ApiError, type ErrorDetail, invalid } from '#server/kernel/errors'
import { own } from '#server/kernel/own'
import { readDotenv } from '#server/kernel/dotenv'
import { MOST_VARIABLES, tooManyVariables } from './changes.ts'
import { VariableKey, type VariableImport, VariableText } from './schema.ts'

const faultOf = (schema: v.GenericSchema, input: unknown): string | undefined =>
  v.safeParse(schema, input).issues?.[0].message

/** What is wrong with a key or its value, if anything; neither is quoted. */
function faultIn(key: string, value: string): string | undefined {
  const name = faultOf(VariableKey, key)
  if (name !== undefined) return `has a name that ${name}`
  return faultOf(VariableText, value) && 'has a value of more than 100,000 bytes, or with NUL in it.'
}

function refuse(details: ErrorDetail[]): void {
  const [first] = details
  if (first) throw new ApiError('VALIDATION_ERROR', `${first.path}: ${first.message}`, details.slice(0, 100))
}

/** Keys and values of an import; a 422 names every line that cannot be taken. */
export function entriesOf(body: VariableImport): [key: string, value: string][] {
  const entries = readEntries(body)
  const named = new Set(entries.map(([key]) => key))
  const message = 'is said of a variable that is not among those of the import.'
  refuse(
    Object.keys(body.details ?? {})
      .filter((key) => !named.has(key))
      .map((key) => ({ path: `details.${key.slice(0, 255)}`, message })),
  )
  return entries
}

/** Before they are written: nobody waits for tens of thousands of them, which are then taken back. */
function requireFew(entries: readonly unknown[]): void {
  if (entries.length > MOST_VARIABLES) throw tooManyVariables()
}

function readEntries(body: VariableImport): [key: string, value: string][] {
  if ((body.text === undefined) === (body.variables === undefined))
    throw invalid('text', 'or variables must be given, and only one of the two.')
  if (body.variables) {
    const entries = Object.entries(body.variables)
    requireFew(entries)
    refuse(
      entries.flatMap(([key, value]) => {
        const message = faultIn(key, value)
        return message ? [{ path: `variables.${key.slice(0, 255)}`, message }] : []
      }),
    )
    return entries
  }
  const { entries, bad } = readDotenv(body.text!, MOST_VARIABLES)
  requireFew(entries)
  const faults = entries.flatMap(({ line, key, value }) => {
    const message = faultIn(key, value)
    return message ? [{ line, message }] : []
  })
  refuse(
    [...bad, ...faults]
      .sort((a, b) => a.line - b.line)
      .map(({ line, message }) => ({ path: 'text', message: `line ${line} ${message}` })),
  )
  return entries.map(({ key, value }) => [key, value])
}

/** What an import says of one of its variables beside the value. */
export function saidOf({ secret, scopes, details }: VariableImport, key: string) {
  const single = own(details ?? {}, key)
  return {
    secret: single?.secret ?? secret,
    scopes: single?.scopes ?? scopes,
    comment: single?.comment,
  }
}
