import { own } from '#server/kernel/own'
import { passedOver } from '#server/kernel/passed-over'
import * as v from 'valibot'
import { ApiError, type ErrorDetail, invalid } from '#server/kernel/errors'
import { sentence } from '#server/kernel/sentences'

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
  pipe?: { type: string; requirement?: unknown }[]
}
/** Items that may be judged one by one, and entries of a dictionary, which no schema limits. */
const MANY = 4000

/** The most items that the schema of a list takes; undefined where it names no limit. */
function mostItems({ pipe = [] }: Limited): number | undefined {
  const requirement = pipe.find(({ type }) => type === 'max_length')?.requirement
  return typeof requirement === 'number' ? Math.max(requirement, MANY) : undefined
}
/**
 * Refuses a list or dictionary with far too many items before any of them is judged: a schema reads all of
 * them first, and words for each what is wrong with it.
 */
function refuseTooMany(schema: Limited, value: unknown, path: readonly string[] = []): void {
  if (typeof value !== 'object' || value === null) return
  if (schema.wrapped) return refuseTooMany(schema.wrapped, value, path)
  const limit = schema.type === 'array' ? mostItems(schema) : MANY
  const given = Object.keys(value)
  if (schema.entries === undefined && limit !== undefined && given.length > limit)
    throw invalid(path.join('.') || 'body', `must have at most ${limit} items.`)
  for (const name of schema.entries === undefined ? given : Object.keys(schema.entries)) {
    const inner = schema.item ?? schema.value ?? own(schema.entries, name)
    if (inner) refuseTooMany(inner as Limited, own(value as Record<string, unknown>, name), [...path, name])
  }
}

/** Parses a body field by field; the first wrong field leads the message of the 422. */
export function parseBody<S extends v.GenericSchema>(schema: S, value: unknown): v.InferOutput<S> {
  const list_at = listForObject(schema, value)
  if (list_at) throw invalid(list_at.join('.') || 'body', 'must be an object.')
  refuseTooMany(schema as Limited, value)
  const result = v.safeParse(schema, value)
  if (result.success) {
    const name = passedOver(value)
    if (name !== undefined) throw invalid(name, 'cannot be used as a name here. Choose another.')
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
