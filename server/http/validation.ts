import { own } from '#server/kernel/own'
import * as v from 'valibot'
import { ApiError, type ErrorDetail, invalid } from '#server/kernel/errors'

const oneOf = (values: readonly string[]) =>
  values.length > 1 ? `must be one of ${values.join(', ')}.` : `must be ${values.join()}.`
/** What the library lists as `("a" | "b")`. */
const choices = (expected: string | null) => oneOf(expected?.replace(/^\(|\)$/g, '').split(' | ') ?? [])
/** Numbers of a query that are longer than it takes. */
const MANY_DIGITS = /^-?\d{16,}$/
const unitOf = ({ input }: v.BaseIssue<unknown>) => (typeof input === 'string' ? 'characters' : 'items')
/** Sentences of validation that never repeat the input: it may be a password, and it may be hostile. */
function sentence(issue: v.BaseIssue<unknown>): string {
  const { type, expected, received } = issue
  if (received === 'undefined') return 'is required.'
  switch (type) {
    case 'string':
      return 'must be a text.'
    case 'number':
      return MANY_DIGITS.test(String(issue.input))
        ? 'must be a number of at most 15 digits.'
        : 'must be a number.'
    case 'boolean':
      return 'must be true or false.'
    case 'array':
      return 'must be a list.'
    case 'object':
    case 'strict_object':
      return expected === 'never' ? 'is not a field of this request.' : 'must be an object.'
    case 'picklist':
    case 'literal':
    case 'enum':
      return choices(expected)
    case 'variant':
      return expected === 'Object' ? 'must be an object.' : choices(expected)
    case 'integer':
    case 'safe_integer':
      return 'must be a whole number.'
    case 'min_value':
      return `must be at least ${expected?.slice(2)}.`
    case 'max_value':
      return `must be at most ${expected?.slice(2)}.`
    case 'min_length':
    case 'non_empty':
      return expected === '>=1' || type === 'non_empty'
        ? 'must not be empty.'
        : `must have at least ${expected?.slice(2)} ${unitOf(issue)}.`
    case 'max_length':
      return `must have at most ${expected?.slice(2)} ${unitOf(issue)}.`
    case 'email':
      return 'must be an e-mail address.'
    case 'iso_timestamp':
      return 'must be a time such as 2026-01-31T12:00:00Z.'
    case 'never':
      return 'is not a field of this request.'
    default:
      return 'has the wrong form.'
  }
}
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

/** Parses a body field by field; the first wrong field leads the message of the 422. */
export function parseBody<S extends v.GenericSchema>(schema: S, value: unknown): v.InferOutput<S> {
  const list_at = listForObject(schema, value)
  if (list_at) throw invalid(list_at.join('.') || 'body', 'must be an object.')
  const result = v.safeParse(schema, value)
  if (result.success) return result.output
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
