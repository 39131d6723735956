/** One assignment of a dotenv text, with the remarks above it. */
export interface Assignment {
  key: string
  value: string
  comment: string | null
}

const LINE_END = /\r\n?/g
const SKIPPED = /[^\S\n]*(#[^\n]*)?(?:\n|$)/y
const ASSIGNED = /[^\S\n]*(?:export[^\S\n]+)?([A-Za-z_]\w*)(?:[^\S\n]*=[^\S\n]*|:[^\S\n]+)/y
/** A quoted value with nothing behind it but a comment; it may go over several lines. */
const QUOTED = /('(?:\\'|[^'])*'|"(?:\\"|[^"])*"|`(?:\\`|[^`])*`)[^\S\n]*(?:#[^\n]*)?(?:\n|$)/y
const UNQUOTED = /([^#\n]*)(?:#[^\n]*)?(?:\n|$)/y
const REST_OF_LINE = /[^\n]*(?:\n|$)/y

function at(pattern: RegExp, text: string, place: number): RegExpExecArray | null {
  pattern.lastIndex = place
  return pattern.exec(text)
}

/** What the package `dotenv` makes of the text behind the equal sign, which is what the server reads. */
function valueOf(raw: string): string {
  const text = raw.trim()
  const value = /^(['"`])([\s\S]*)\1$/.exec(text)?.[2] ?? text
  return text.startsWith('"') ? value.replaceAll('\\n', '\n').replaceAll('\\r', '\r') : value
}

/**
 * The assignments of a dotenv text, in its order.
 * `unread`: the number of the first line that is none of them, nor a comment, nor empty.
 */
export function readDotenv(source: string): { entries: Assignment[]; unread?: number } {
  const text = source.replace(/^\uFEFF/, '').replace(LINE_END, '\n')
  const entries: Assignment[] = []
  let unread: number | undefined
  let remarks: string[] = []
  for (let place = 0; place < text.length; ) {
    const skipped = at(SKIPPED, text, place)
    if (skipped) {
      if (skipped[1]) remarks.push(skipped[1].replace(/^#+\s*/, '').trim())
      else remarks = []
      place += skipped[0].length
      continue
    }
    const assigned = at(ASSIGNED, text, place)
    if (assigned) {
      const from = place + assigned[0].length
      const found = at(QUOTED, text, from) ?? at(UNQUOTED, text, from)!
      entries.push({
        key: assigned[1]!,
        value: valueOf(found[1]!),
        comment: remarks.filter(Boolean).join(' ') || null,
      })
      place = from + found[0].length
    } else {
      unread ??= text.slice(0, place).split('\n').length
      place += at(REST_OF_LINE, text, place)![0].length
    }
    remarks = []
  }
  return { entries, ...(unread ? { unread } : {}) }
}

/**
 * The variables that a paste into a cell brings; undefined when it is what belongs into the cell itself. A single
 * `NAME=value` may be a value as it is, such as `sslmode=off`, so that only a key makes it an assignment.
 */
export function pastedVariables(text: string, cell: 'key' | 'value'): Assignment[] | undefined {
  const { entries, unread } = readDotenv(text)
  if (unread || entries.length === 0) return undefined
  const one_line = !text.trim().includes('\n')
  return cell === 'value' && one_line && !/^\s*export\s/.test(text) ? undefined : entries
}

/** Why a paste into the cell of a key is neither a key nor variables; undefined when it may be put there. */
export function pasteFault(text: string): string | undefined {
  const { unread } = readDotenv(text)
  if (!unread || !text.trim().includes('\n')) return undefined
  return `Nothing was pasted: line ${unread} is neither NAME=value nor a comment.`
}
