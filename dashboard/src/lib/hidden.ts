/**
 * Marks that nobody sees and that show the text after them in another order than it has, or on
 * another line: a log line, a commit or a value of a variable could be read as another than it is.
 */
const NAMES: Readonly<Record<string, string>> = {
  '\u0085': 'NEL',
  '\u061c': 'ALM',
  '\u200f': 'RLM',
  '\u2028': 'LS',
  '\u2029': 'PS',
  '\u202a': 'LRE',
  '\u202b': 'RLE',
  '\u202c': 'PDF',
  '\u202d': 'LRO',
  '\u202e': 'RLO',
  '\u2066': 'LRI',
  '\u2067': 'RLI',
  '\u2068': 'FSI',
  '\u2069': 'PDI',
}
const HIDDEN = new RegExp(`[${Object.keys(NAMES).join('')}]`)
const EACH = new RegExp(HIDDEN.source, 'g')
/** Texts with such letters have these marks of good right, and show by themselves which way they are read. */
const RIGHT_TO_LEFT =
  /(?=\p{L})[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u
const OF_LETTERS = /^[\u061c\u200f]$/

/** A run of text; one that is a hidden mark bears its name, to be shown beside it. */
export interface Part {
  text: string
  mark?: string
}

/** Takes a text apart into what is read and what is hidden in it; put together again they are the text. */
export function partsOf(text: string): Part[] {
  // Most texts hold none.
  if (!HIDDEN.test(text)) return text === '' ? [] : [{ text }]
  const parts: Part[] = []
  let from = 0
  const has_letters = RIGHT_TO_LEFT.test(text)
  for (const { index, 0: found } of text.matchAll(EACH)) {
    if (has_letters && OF_LETTERS.test(found)) continue
    if (index > from) parts.push({ text: text.slice(from, index) })
    parts.push({ text: found, mark: NAMES[found]! })
    from = index + 1
  }
  if (from < text.length) parts.push({ text: text.slice(from) })
  return parts
}
