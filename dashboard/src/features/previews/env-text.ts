import { readDotenv } from '@/lib/dotenv'

/** Stands for a value that is not shown, and leaves it as it is. */
const MASK = '********'
const QUOTES = ['', "'", '`', '"']

/** A value as a line that is read as that value again; masked where no quotes hold it, so that it stays. */
function lineOf(key: string, value: string): string {
  const lines = QUOTES.map((quote) => `${key}=${quote}${value}${quote}`)
  const isSame = (line: string) => {
    const { entries, unread } = readDotenv(line)
    return unread === undefined && entries.length === 1 && entries[0]!.value === value
  }
  return lines.find(isSame) ?? `${key}=${MASK}`
}

/** Variables as the text of a form. */
export const textOf = (env: Readonly<Record<string, string>>): string =>
  Object.entries(env)
    .map(([key, value]) => lineOf(key, value))
    .join('\n')

/** Variables of such a text; `fault` says which line is none. */
export function envOf(text: string): { env: Record<string, string>; fault?: string } {
  const { entries, unread } = readDotenv(text)
  const env = Object.fromEntries(entries.map(({ key, value }) => [key, value]))
  return unread === undefined
    ? { env }
    : { env, fault: `Line ${unread} is neither NAME=value nor a comment.` }
}
