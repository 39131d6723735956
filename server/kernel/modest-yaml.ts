/** What a YAML text may have at most; see `isModestYaml`. */
export interface YamlLimits {
  characters: number
  depth: number
  lines: number
  /** Characters of one line. */
  line: number
}

/** Explicit keys (`? key`) in a row double the time with each one; nobody writes them by hand. */
const MAX_EXPLICIT_KEYS = 12
const EXPLICIT_KEY = /(?:^|[\s?:-])\?(?=\s|$)/g
const MANY_DASHES = /^ {0,200}(?:- ){17}/m

/**
 * The parser takes minutes for some kilobytes of open brackets, quotes, dashes or question marks in a row,
 * and its time grows with the square of the lines. Real settings have few and short lines and few levels, so
 * that one pass over the characters tells them from an attack. Brackets inside of strings count too, which is
 * harmless.
 */
export function isModestYaml(text: string, limits: YamlLimits): boolean {
  if (
    text.length > limits.characters ||
    MANY_DASHES.test(text) ||
    (text.match(EXPLICIT_KEY)?.length ?? 0) > MAX_EXPLICIT_KEYS
  )
    return false
  let depth = 0
  let line_start = 0
  let lines = 1
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '\n') {
      line_start = at + 1
      lines++
    } else if (character === '[' || character === '{') depth++
    else if ((character === ']' || character === '}') && depth > 0) depth--
    if (depth > limits.depth || lines > limits.lines || at - line_start > limits.line) return false
  }
  return true
}
