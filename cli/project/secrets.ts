import { dotenvPieces, readDotenv } from '#server/kernel/dotenv'
import { own } from '#server/kernel/own'
import type { Change } from '#server/project-file/diff'
import type { Item } from '#server/project-file/items'
import { CommandError } from '../terminal.ts'
import { EXIT } from '../client/exit-codes.ts'
import { readText } from '../client/read-text.ts'

/** Values of secrets: for all by name, and for single apps, whose lines follow a line such as `[shop]`. */
export interface SecretValues {
  of(item: Item): string | undefined
}
const SECTION = /^\[([a-z0-9-]+)\]\s*$/

/** Reads a dotenv text that may have sections for apps. */
export function readSecrets(text: string, file = 'secrets'): SecretValues {
  const sections = new Map<string, string[]>([['', []]])
  let name = ''
  // A value may have lines that look like the beginning of a section.
  for (const piece of dotenvPieces(text)) {
    const found = SECTION.exec(piece)?.[1]
    if (found !== undefined) name = found
    const pieces = sections.get(name) ?? []
    sections.set(name, pieces)
    if (found === undefined) pieces.push(piece)
  }
  const values = new Map(
    [...sections].map(([section, lines]) => {
      const { entries, bad } = readDotenv(lines.join(''))
      const where = section === '' ? '' : ` below [${section}]`
      if (bad[0]) throw new CommandError(`${file}${where}: line ${bad[0].line} ${bad[0].message}`, EXIT.USAGE)
      return [section, Object.fromEntries(entries.map(({ key, value }) => [key, value]))]
    }),
  )
  return { of: (item) => own(values.get(item.of ?? ''), item.name) ?? own(values.get(''), item.name) }
}
export const secretsFrom = (file: string | undefined): SecretValues =>
  file === undefined ? { of: () => undefined } : readSecrets(readText(file), file)

/** Secrets that are to be made and have no value: nothing is begun without them. */
export function requireSecrets(changes: readonly Change[], secrets: SecretValues): void {
  const missing = changes.filter(
    ({ action, item }) =>
      action === 'create' && item.fields.secret === true && secrets.of(item) === undefined,
  )
  if (missing.length === 0) return
  const names = missing.map(({ item }) => (item.of === undefined ? item.name : `${item.name} of ${item.of}`))
  throw new CommandError(
    `No value is known for ${names.join(', ')}. Write a dotenv file, with a line such as [shop] before what one app alone gets, and give it with --secrets <file>. Nothing was changed.`,
    EXIT.REFUSED,
  )
}
