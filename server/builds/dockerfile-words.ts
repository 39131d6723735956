/** One way of taking an instruction apart: its flags, and what comes after them. */
export interface Words {
  flags: string[]
  words: string[]
}

/** White space as the builder knows it; an expression's `\s` has U+FEFF in addition, and not U+0085. */
const SPACE = '[\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]'
const IS_SPACE = new RegExp(SPACE)
const PASSED_OVER = new RegExp(`^${SPACE}*(?:#|$)`)
/** Whether a line is passed over within an instruction that goes on: a comment, or nothing. */
export const isPassedOver = (line: string): boolean => PASSED_OVER.test(line)
/** What the builder parts the words after the flags by. */
const BETWEEN_WORDS = /[\t\v\f\r ]+/

/** Flags are unescaped with a backslash whatever the file's own escape character is. */
const plainWord = (word: string, escape: string) =>
  word.replaceAll(escape, '').replaceAll('\\', '').replace(/["']/g, '')

/** Names of variables end at quotes and escapes, which are taken away later: `"$A"b` is not `$Ab`. */
const withEndsOfNames = (text: string): string => text.replace(/\$([A-Za-z_]\w*)(?=["'\\`])/g, '${$1}')

/** Where a JSON list ends that a text begins with; -1 when it does not. */
function endOfList(text: string): number {
  let is_quoted = false
  for (let at = 1; at < text.length; at += 1) {
    const character = text[at]!
    if (is_quoted && character === '\\') at += 1
    else if (character === '"') is_quoted = !is_quoted
    else if (!is_quoted && character === ']') return at + 1
  }
  return -1
}

/**
 * What may be the words of a text without flags. Of a JSON list with something behind it some
 * builders read the list, and others no list at all.
 */
function wordsOf(text: string, between: RegExp, escape: string): string[][] {
  const plain = text
    .split(between)
    .filter((word) => word !== '')
    .map((word) => plainWord(word, escape))
  const end = text.startsWith('[') ? endOfList(text) : -1
  if (end < 0) return [plain]
  try {
    const list: unknown = JSON.parse(text.slice(0, end))
    if (!Array.isArray(list) || !list.every((word) => typeof word === 'string')) return [plain]
    // The builder expands the words of a list too, which takes quotes and escapes away.
    const lists = [list, list.map((word) => plainWord(withEndsOfNames(word), escape))]
    return end === text.length ? lists : [...lists, plain]
  } catch {
    return [plain]
  }
}

/** By white space alone, whatever quotes say. */
function bySpaces(rest: string, escape: string): Words[] {
  const text = rest.trim()
  const [, head = '', tail = ''] = /^((?:--\S*(?:\s+|$))*)(.*)$/s.exec(text) ?? []
  const flags = head.split(/\s+/).map((word) => plainWord(word, escape))
  return wordsOf(tail, /\s+/, escape).map((words) => ({ flags, words }))
}

/**
 * As the builder does: a flag goes on to the next white space that is in no quotes and not escaped.
 * New ones take the word behind a flag without a value for its value.
 */
function asBuilder(text: string, escape: string, has_values = false): Words[] {
  const flags: string[] = []
  let at = 0
  const skipSpace = () => {
    while (at < text.length && IS_SPACE.test(text[at]!)) at += 1
  }
  const nextWord = () => {
    let word = ''
    let quote = ''
    for (; at < text.length && (quote !== '' || !IS_SPACE.test(text[at]!)); at += 1) {
      const character = text[at]!
      if (character === quote) quote = ''
      else if (quote === '' && /["']/.test(character)) quote = character
      else if (character === '\\') word += text[(at += 1)] ?? ''
      else word += character
    }
    skipSpace()
    return word.replace(/["']/g, '')
  }
  for (skipSpace(); text.startsWith('--', at); ) {
    const flag = nextWord()
    if (flag === '--') break
    flags.push(has_values && !flag.includes('=') ? `${flag}=${nextWord()}` : flag)
  }
  return wordsOf(text.slice(at).trim(), BETWEEN_WORDS, escape).map((words) => ({ flags, words }))
}

/**
 * Every way in which some builder takes an instruction apart. Old ones look at the bytes of flags
 * one by one, of which some count as white space within a letter.
 */
export function readingsOf(arguments_text: string, escape: string): Words[] {
  const rest = withEndsOfNames(arguments_text)
  const readings = bySpaces(rest, escape)
  if (/^\s*--|\u0085/.test(rest)) readings.push(...asBuilder(rest, escape))
  if (/^\s*--(?:.*\s--)?[^\s=]+\s/s.test(rest)) readings.push(...asBuilder(rest, escape, true))
  if (/^\s*--.*[^\0-\x7f]/s.test(rest))
    readings.push(...asBuilder(Buffer.from(rest).toString('latin1'), escape))
  return readings
}
