/** Names that dictionaries of a schema pass over without a word; a caller must hear of it. */
const PASSED_OVER = ['constructor', 'prototype']

/** Dotted path of the first key that would be passed over. */
export function passedOver(value: unknown, path: readonly string[] = []): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, inner] of Object.entries(value)) {
    const here = [...path, key]
    const found = PASSED_OVER.includes(key) ? here.join('.') : passedOver(inner, here)
    if (found !== undefined) return found
  }
  return undefined
}
