const MAX_DEPTH = 32
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a

/** A JSON text that is well formed, and still nothing that an honest client sends. */
export class JsonError extends Error {}

/** Keys that a value has at all levels; refuses very deep nesting, and keys that reach into prototypes. */
function countKeys(value: unknown, depth = 1): number {
  if (typeof value !== 'object' || value === null) return 0
  if (depth > MAX_DEPTH) throw new JsonError(`The JSON is nested deeper than ${MAX_DEPTH} levels.`)
  let keys = 0
  for (const [key, inner] of Object.entries(value)) {
    if (key === '__proto__') throw new JsonError('The JSON has a key that is not allowed.')
    keys += countKeys(inner, depth + 1)
  }
  return Array.isArray(value) ? keys : keys + Object.keys(value).length
}

/** Keys that are written in a well-formed text: one for each colon outside of its strings. */
function countWrittenKeys(text: string): number {
  let keys = 0
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at)
    if (char === COLON) keys += 1
    if (char !== QUOTE) continue
    at += 1
    while (text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1
  }
  return keys
}

/**
 * Parses a JSON text of somebody else. A key that is given twice is refused: what stands in front may have
 * read the other one. Throws JsonError, or SyntaxError for what is no JSON.
 */
export function parseForeignJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (countKeys(value) !== countWrittenKeys(text))
    throw new JsonError('The JSON has an object with a key that is given twice.')
  return value
}
