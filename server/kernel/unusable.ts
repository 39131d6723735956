/** Names that dictionaries of a schema pass over without a word; a caller must hear of it. */
const PASSED_OVER = ['constructor', 'prototype']

/** Why a value cannot be kept as it was given, and where, as a dotted path. */
export interface Unusable {
  path: string
  reason: string
}

/**
 * The first name that would be passed over, or text that would come back as another one: JSON and YAML can write half
 * of a character (`\ud800`), which no file, database or container holds.
 */
export function unusable(value: unknown, path: readonly string[] = []): Unusable | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? undefined : half(path)
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, inner] of Object.entries(value)) {
    const here = [...path, key]
    if (PASSED_OVER.includes(key))
      return { path: here.join('.'), reason: 'cannot be used as a name here. Choose another.' }
    const found = key.isWellFormed() ? unusable(inner, here) : half(here)
    if (found !== undefined) return found
  }
  return undefined
}

const half = (path: readonly string[]): Unusable => ({
  path: path.join('.').toWellFormed(),
  reason: 'holds half of a character (a surrogate without its other half).',
})
