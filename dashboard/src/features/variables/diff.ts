import { readDotenv } from '@/lib/dotenv'

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
export const MASK = '********'

/** Keys and values of a text as far as the page needs them for its preview; the API has the last word. */
export const readText = (text: string): Map<string, string> =>
  new Map(readDotenv(text).entries.map(({ key, value }) => [key, value]))

/** Remarks in which an export names a variable that it cannot write; the API leaves these as they are. */
const REMARK =
  /^# (\w+) (?:is a secret; reveal=true writes it|cannot be read with the key of this installation|holds characters that a dotenv file cannot write; its reveal shows it)\.\r?$/gm

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
  if (!replace) return changes
  const kept = new Set([...values.keys(), ...[...text.matchAll(REMARK)].map(([, key]) => key!)])
  const gone = known.filter(({ key }) => !kept.has(key))
  return [...changes, ...gone.map(({ key }) => ({ key, kind: 'removed' as const }))]
}
