import type * as v from 'valibot'

const oneOf = (values: readonly string[]) =>
  values.length > 1 ? `must be one of ${values.join(', ')}.` : `must be ${values.join()}.`
/** What the library lists as `("a" | "b")`. */
const choices = (expected: string | null) => oneOf(expected?.replace(/^\(|\)$/g, '').split(' | ') ?? [])
/** Numbers of a query that are longer than it takes. */
const MANY_DIGITS = /^-?\d{16,}$/
const unitOf = ({ input }: v.BaseIssue<unknown>) => (typeof input === 'string' ? 'characters' : 'items')
/** Sentences of validation that never repeat the input: it may be a password, and it may be hostile. */
export function sentence(issue: v.BaseIssue<unknown>): string {
  const { type, expected, received } = issue
  if (received === 'undefined') return 'is required.'
  switch (type) {
    case 'string':
      return 'must be a text.'
    case 'number':
      return typeof issue.input === 'string' && MANY_DIGITS.test(issue.input)
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

/** A moment as people read it in a mail, to the minute. */
export const momentOf = (iso: string): string => `${iso.slice(0, 16).replace('T', ' ')} UTC`
