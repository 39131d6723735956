/** One assignment of a dotenv text. */
export interface DotenvEntry {
  /** Line on which it begins, from 1. */
  line: number
  key: string
  value: string
}
/** A line that cannot be taken, and why; the value is never quoted. */
export interface BadLine {
  line: number
  message: string
}

const SKIPPED = /[^\S\n]*(?:#[^\n]*)?(?:\n|$)/y
const EMPTY_LINES = /(?:[^\S\n]*\n)+/y
const ASSIGNED = /[^\S\n]*(?:export[^\S\n]+)?([\w.-]+)(?:[^\S\n]*=[^\S\n]*|:[^\S\n]+)/y
/** A quoted value with nothing behind it but a comment; it may go over several lines. */
const QUOTED = /('(?:\\'|[^'])*'|"(?:\\"|[^"])*"|`(?:\\`|[^`])*`)[^\S\n]*(?:#[^\n]*)?(?=\n|$)/y
const REST_OF_LINE = /[^\n]*/y
export const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Matches a sticky pattern at a place; its length is 0 where it does not. */
function at(pattern: RegExp, text: string, place: number): RegExpExecArray | null {
  pattern.lastIndex = place
  return pattern.exec(text)
}

/** How another program than the package `dotenv` reads values. */
export interface DotenvRules {
  /** What begins a comment behind a value without quotes. */
  comment: RegExp
  /** Puts variables into a value; what stands in single quotes or backticks is as it is. */
  expand(value: string): string
  /** Tells of a variable that those of the lines after it may name. */
  note(key: string, value: string): void
  /** Characters that all values together may have, as they may name one another. */
  most_characters: number
}

/**
 * The value that begins at a place, as the package `dotenv` reads it, so that it is what a
 * developer's own program gets. The package itself takes U+2028 for the end of a line in some
 * places and not in others: of a megabyte with a quote behind each of them its time is the square.
 */
function valueAt(text: string, from: number, rules?: DotenvRules): string {
  const quoted = at(QUOTED, text, from)?.[1]
  const comment = rules?.comment ?? '#'
  const [plain = ''] = quoted === undefined ? at(REST_OF_LINE, text, from)![0].split(comment, 1) : []
  const value = (quoted ?? plain).trim()
  const [quote = ''] = value
  const is_quoted = value.length > 1 && /["'`]/.test(quote) && value.endsWith(quote)
  const inner = is_quoted ? value.slice(1, -1) : value
  const whole = quote === '"' ? inner.replaceAll('\\n', '\n').replaceAll('\\r', '\r') : inner
  const is_literal = is_quoted && quote !== '"'
  return rules && !is_literal && whole.includes('$') ? rules.expand(whole) : whole
}

/**
 * Reads a dotenv text, and names every line that is no assignment. After more than `most` lines
 * the rest is left unread.
 */
export function readDotenv(
  source: string,
  most = Number.POSITIVE_INFINITY,
): { entries: DotenvEntry[]; bad: BadLine[] } {
  const text = source.replace(/^\uFEFF/, '').replace(/\r\n?/g, '\n')
  const entries: DotenvEntry[] = []
  const bad: BadLine[] = []
  const lines_of = new Map<string, number>()
  let line = 1
  for (let place = 0; place < text.length && entries.length + bad.length <= most; ) {
    const skipped = at(SKIPPED, text, place)
    const found = skipped ? undefined : readEntry(text, place)
    const end = skipped ? place + skipped[0].length : found!.end
    if (found) {
      const first = found.key === undefined ? undefined : lines_of.get(found.key)
      const message = found.fault ?? (first && `sets ${found.key} a second time, after line ${first}.`)
      if (message) bad.push({ line, message })
      else {
        entries.push({ line, key: found.key!, value: found.value! })
        lines_of.set(found.key!, line)
      }
    }
    for (let i = place; i < end; i += 1) if (text[i] === '\n') line += 1
    place = end
  }
  return { entries, bad }
}

/**
 * The variables of a dotenv text, as a developer's own program gets them: what is no assignment is
 * passed over, and of a name's values the last one counts. Undefined for more than `most` of them,
 * or for more characters than the rules allow.
 */
export function parseDotenv(
  source: string,
  most = Number.POSITIVE_INFINITY,
  rules?: DotenvRules,
): Record<string, string> | undefined {
  const text = source.replace(/^\uFEFF/, '').replace(/\r\n?/g, '\n')
  const found = new Map<string, string>()
  let characters = 0
  for (let [place, count] = [0, 0]; place < text.length; ) {
    const skipped = at(EMPTY_LINES, text, place) ?? at(SKIPPED, text, place)
    const assigned = skipped ? undefined : at(ASSIGNED, text, place)
    const from = place + (skipped ?? assigned ?? [''])[0].length
    const end = skipped ? from : endOf(text, assigned ? from : place)
    if (assigned && ++count > most) return undefined
    if (assigned) {
      const value = valueAt(text, from, rules)
      characters += value.length
      if (rules && characters > rules.most_characters) return undefined
      found.set(assigned[1]!, value)
      rules?.note(assigned[1]!, value)
    }
    place = end
  }
  return Object.fromEntries(found)
}

const restEnd = (text: string, from: number): number => {
  const end = from + at(REST_OF_LINE, text, from)![0].length
  return end < text.length ? end + 1 : end
}
/** Where what follows a value that begins at a place begins. */
const endOf = (text: string, from: number): number =>
  restEnd(text, from + (at(QUOTED, text, from)?.[0].length ?? 0))

/** A dotenv text in pieces: whole assignments, however many lines they have, and single lines of everything else. */
export function dotenvPieces(source: string): string[] {
  const text = source.replace(/^\uFEFF/, '').replace(/\r\n?/g, '\n')
  const pieces: string[] = []
  for (let place = 0; place < text.length; ) {
    const skipped = at(SKIPPED, text, place)
    const assigned = skipped ? undefined : at(ASSIGNED, text, place)
    const from = place + (skipped ?? assigned ?? [''])[0].length
    const end = skipped ? from : endOf(text, from)
    pieces.push(text.slice(place, end))
    place = end
  }
  return pieces
}

/** What begins at a place that is neither empty nor a comment; ends behind its last line. */
function readEntry(
  text: string,
  place: number,
): { end: number; key?: string; value?: string; fault?: string } {
  const assigned = at(ASSIGNED, text, place)
  if (!assigned) return { end: restEnd(text, place), fault: 'is no assignment; write KEY=value.' }
  const key = assigned[1]!
  const from = place + assigned[0].length
  const quoted = at(QUOTED, text, from)
  const end = endOf(text, from)
  if (!VARIABLE_NAME.test(key))
    return { end, fault: 'has a name with other characters than letters, digits and _, or a digit first.' }
  const quote = text[from]
  if (!quoted && (quote === '"' || quote === "'" || quote === '`') && !closes(text, from, quote))
    return { end, fault: `opens a quote for ${key} that is never closed.` }
  return { end, key, value: valueAt(text, from) }
}

/** Whether a quote has its other half on the same line, as in `"a" and more`, which is taken as it stands. */
const closes = (text: string, from: number, quote: string): boolean =>
  at(REST_OF_LINE, text, from)![0].lastIndexOf(quote) > 0

/** A value that every reader of dotenv takes without quotes. */
const PLAIN = /^[A-Za-z0-9_./:@%+,=-]*$/

/** What stands in the place of a value that the format has no way to write. */
export const unwritable = (key: string): string =>
  `# ${key} holds characters that a dotenv file cannot write; its reveal shows it.`

/**
 * One assignment that reads back as the very same value; a comment that says so where the format
 * has no way to write it.
 */
export function renderEntry(key: string, value: string): string {
  if (PLAIN.test(value)) return `${key}=${value}`
  const returns = value.includes('\r')
  if (!value.endsWith('\\') && !returns) {
    if (!value.includes("'")) return `${key}='${value}'`
    if (!value.includes('`')) return `${key}=\`${value}\``
  }
  if (!/["\\]/.test(value)) return `${key}="${value.replaceAll('\n', '\\n').replaceAll('\r', '\\r')}"`
  return unwritable(key)
}
