/**
 * Splits a line into words as a POSIX shell would, without anything being expanded: Compose gives a command
 * that is one text to no shell. Undefined when a quote is not closed.
 */
export function splitWords(line: string): string[] | undefined {
  const words: string[] = []
  let word = ''
  let started = false
  let quote: '"' | "'" | undefined
  for (let at = 0; at < line.length; at++) {
    const character = line[at]!
    if (quote === undefined && /\s/.test(character)) {
      if (started) words.push(word)
      word = ''
      started = false
      continue
    }
    started = true
    if (quote === undefined && (character === '"' || character === "'")) quote = character
    else if (character === quote) quote = undefined
    else if (character === '\\' && escapes(quote, line[at + 1])) word += line[++at] ?? ''
    else word += character
  }
  if (quote !== undefined) return undefined
  if (started) words.push(word)
  return words
}

/** Nothing is escaped in single quotes, and only a few characters in double ones. */
const escapes = (quote: '"' | "'" | undefined, next: string | undefined): boolean =>
  quote === undefined || (quote === '"' && next !== undefined && '"\\$`'.includes(next))
