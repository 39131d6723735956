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
