import { parse } from 'dotenv'

/** White space with the starts of lines in it, from each of which the parser looks through the rest of it. */
const MOST_LOOKS = 5_000_000

/**
 * Reads a dotenv text of a stranger; undefined for one with so much white space that the parser would take
 * minutes for it.
 */
export function parseEnvFile(text: string): Record<string, string> | undefined {
  let looks = 0
  for (const [gap] of text.matchAll(/\s+/g)) {
    looks += gap.length * (gap.match(/[\n\r\u2028\u2029]/g)?.length ?? 0)
    if (looks > MOST_LOOKS) return undefined
  }
  return parse(text)
}
