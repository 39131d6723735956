/** A variable as the page knows it; the value of a secret is unknown to it. */
export interface Entry {
  key: string
  value: string | undefined
}
export interface Change {
  key: string
  kind: 'added' | 'changed' | 'removed'
}

/** What answers show instead of a secret; in a text it leaves the secret as it is. */
const MASK = '********'
const LINE = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)$/

/** Ends a quoted value; undefined while its quote is open. */
function unquote(text: string): string | undefined {
  const quote = text[0]
  if (quote !== '"' && quote !== "'" && quote !== '`') return text.replace(/\s+#.*$/, '').trim()
  const end = text.lastIndexOf(quote)
  if (end === 0) return undefined
  const inner = text.slice(1, end)
  return quote === '"' ? inner.replaceAll('\\n', '\n').replaceAll('\\"', '"') : inner
}

/** Keys and values of a text as far as the page needs them for its preview; the API has the last word. */
export function readText(text: string): Map<string, string> {
  const values = new Map<string, string>()
  const lines = text.split('\n')
  for (let at = 0; at < lines.length; at++) {
    const match = LINE.exec(lines[at]!)
    if (!match) continue
    let raw = match[2]!.trim()
    let value = unquote(raw)
    while (value === undefined && at + 1 < lines.length) {
      raw += `\n${lines[++at]}`
      value = unquote(raw)
    }
    values.set(match[1]!, value ?? raw)
  }
  return values
}

/** What saving the text would do, in the order of the text; removals last. */
export function diffText(text: string, known: readonly Entry[], replace: boolean): Change[] {
  const values = readText(text)
  const before = new Map(known.map((entry) => [entry.key, entry]))
  const changes: Change[] = []
  for (const [key, value] of values) {
    const entry = before.get(key)
    if (!entry) changes.push({ key, kind: 'added' })
    else if (value !== MASK && value !== entry.value) changes.push({ key, kind: 'changed' })
  }
  if (replace) for (const { key } of known) if (!values.has(key)) changes.push({ key, kind: 'removed' })
  return changes
}
