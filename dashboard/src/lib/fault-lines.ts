/** A line of a text, counted from 1, with what is wrong in it. */
export interface FaultLine {
  line: number
  message: string
}

const indentOf = (line: string): number => line.length - line.trimStart().length
const plain = (key: string): string => key.trim().replace(/^(["'])(.*)\1$/, '$2')
const keyOf = (line: string): string | undefined => {
  const [, key] = /^\s*(?:- )?((?:"[^"]*"|'[^']*'|[^:#"'])+):(?:\s|$)/.exec(line) ?? []
  return key === undefined ? undefined : plain(key)
}

/**
 * The line where a key of a YAML text stands, by its path; that of the nearest key above it which is there. Looks at
 * the indentation alone, so that a text which is not valid YAML has places, too.
 */
export function lineOfPath(text: string, path: readonly string[]): number | undefined {
  const lines = text.split('\n')
  let [from, found, above] = [0, -1, -1]
  for (const name of path) {
    const at = lines.findIndex((line, index) => {
      if (index < from || line.trim() === '') return false
      return keyOf(line) === name && indentOf(line) > above
    })
    const end = lines.findIndex(
      (line, index) => index >= from && /^\s*[^\s#]/.test(line) && indentOf(line) <= above,
    )
    if (at < 0 || (end >= 0 && at > end)) break
    found = at
    above = indentOf(lines[at]!)
    from = at + 1
  }
  return found < 0 ? undefined : found + 1
}

/**
 * Where the server's words about a text belong: a message may name its line, and the path of a field its key.
 * @param field that holds the text: paths below it are keys of the text.
 */
export function faultLines(text: string, field: string, fields: Record<string, string>): FaultLine[] {
  return Object.entries(fields).flatMap(([path, message]) => {
    const [first, ...keys] = path.split('.')
    if (first !== field) return []
    const said = /\bline (\d+)/.exec(message)
    const line = said ? Number(said[1]) : lineOfPath(text, keys)
    return line === undefined ? [] : [{ line, message }]
  })
}

/** The first thing that is wrong with the text of a field, with the key in it that it is about. */
export function textFault(field: string, fields: Record<string, string>): string | undefined {
  const [path, message] = Object.entries(fields).find(([path]) => path.split('.')[0] === field) ?? []
  const key = path?.slice(field.length + 1)
  return key ? `${key}: ${message}` : message
}
