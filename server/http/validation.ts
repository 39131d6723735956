import { own } from '#server/kernel/own'
import * as v from 'valibot'
import { ApiError, type ErrorDetail, invalid } from '#server/kernel/errors'
import { sentence } from '#server/kernel/sentences'
import { unusable } from '#server/kernel/unusable'

v.setGlobalMessage(sentence)

const MAX_PATH_LENGTH = 200
/**
 * Dotted path of an issue, e.g. `health_check.path`; `fallback` for the whole input. Cut, because its names
 * may be the caller's.
 */
const dotted = (issue: v.BaseIssue<unknown>, fallback: string) =>
  v.getDotPath(issue)?.slice(0, MAX_PATH_LENGTH) ?? fallback

function details(issues: readonly v.BaseIssue<unknown>[], whole: string): ErrorDetail[] {
  return issues.slice(0, 20).map((issue) => ({ path: dotted(issue, whole), message: issue.message }))
}

const OBJECTS: readonly string[] = ['object', 'strict_object', 'loose_object', 'record']
interface Described {
  type: string
  wrapped?: Described
  entries?: Record<string, Described>
}
/**
 * The path of the first list in the place of an object: to JavaScript lists are objects, so that schemas of
 * objects take them as empty ones.
 */
function listForObject(
  schema: Described,
  value: unknown,
  path: readonly string[] = [],
): readonly string[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (schema.wrapped) return listForObject(schema.wrapped, value, path)
  if (Array.isArray(value)) return OBJECTS.includes(schema.type) ? path : undefined
  return Object.entries(schema.entries ?? {})
    .map(([key, inner]) => listForObject(inner, own(value as Record<string, unknown>, key), [...path, key]))
    .find(Boolean)
}

interface Limited extends Described {
  item?: Limited
  value?: Limited
  pipe?: { type: string; requirement?: unknown; metadata?: Record<string, unknown> }[]
}
/** Items that may be judged one by one, unless the schema takes more of them. */
const MANY = 4000
/** Characters of all texts in a list or dictionary together; its schema limits each of them only. */
const MANY_CHARS = 65_536

/** The most items that the schema of a list takes before each of them is judged. */
function mostItems(schema: Limited | undefined): number {
  const { requirement } = schema?.pipe?.find(({ type }) => type === 'max_length') ?? {}
  return typeof requirement === 'number' ? Math.max(requirement, MANY) : MANY
}
const charsOf = (value: object): number =>
  Object.entries(value).reduce(
    (sum, [key, one]) =>
      sum + (Array.isArray(value) ? 0 : key.length) + (typeof one === 'string' ? one.length : 0),
    0,
  )
const mayBeLarge = (schema: Limited | undefined): boolean =>
  schema?.pipe?.some(({ metadata }) => metadata?.maxProperties !== undefined) ?? false
/**
 * Refuses a list or dictionary with far too many items, or too much in them, before any of them is judged: a
 * schema reads all of them first, and words for each what is wrong with it. What no schema describes, or one
 * with several forms, has the same limits.
 */
function refuseTooMany(schema: Limited | undefined, value: unknown, path: readonly string[] = []): void {
  if (typeof value !== 'object' || value === null) return
  if (schema?.wrapped) return refuseTooMany(schema.wrapped, value, path)
  const entries = schema?.entries
  if (entries === undefined) {
    const limit = mostItems(schema)
    const refuse = (what: string) => {
      throw invalid(path.join('.') || 'body', `must have at most ${what}.`)
    }
    if (Object.keys(value).length > limit) refuse(`${limit} items`)
    if (!mayBeLarge(schema) && charsOf(value) > MANY_CHARS) refuse(`${MANY_CHARS} characters in all`)
  }
  for (const name of Object.keys(entries ?? value)) {
    const inner = schema?.item ?? schema?.value ?? own(entries, name)
    refuseTooMany(inner as Limited | undefined, own(value as Record<string, unknown>, name), [...path, name])
  }
}

/** Parses a body field by field; the first wrong field leads the message of the 422. */
export function parseBody<S extends v.GenericSchema>(schema: S, value: unknown): v.InferOutput<S> {
  const list_at = listForObject(schema, value)
  if (list_at) throw invalid(list_at.join('.') || 'body', 'must be an object.')
  refuseTooMany(schema as Limited, value)
  // A text that is too long is not judged by expressions any more, some of which take the square of its length.
  const result = v.safeParse(schema, value, { abortPipeEarly: true })
  if (result.success) {
    const fault = unusable(value)
    if (fault) throw invalid(fault.path || 'body', fault.reason)
    return result.output
  }
  const list = details(result.issues, 'body')
  throw new ApiError('VALIDATION_ERROR', `${list[0]!.path}: ${list[0]!.message}`, list)
}

/** Parses a query; anything wrong is a 400. */
export function parseQuery<S extends v.GenericSchema>(schema: S, value: unknown): v.InferOutput<S> {
  const result = v.safeParse(schema, value)
  if (result.success) return result.output
  const list = details(result.issues, 'query').map(({ path, message }) => ({
    // Which of several values is wrong is no part of the parameter's name.
    path: path.replace(/\.\d+$/, ''),
    message: message.replace('a field of this request', 'a parameter of this endpoint'),
  }))
  throw new ApiError('BAD_REQUEST', `${list[0]!.path}: ${list[0]!.message}`, list)
}
