import { createHash } from 'node:crypto'

const MARK_LENGTH = 8

/** A name of at most so many characters; one that is cut ends with a mark of the whole, so that it stays unique. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text
  const mark = createHash('sha256').update(text).digest('hex').slice(0, MARK_LENGTH)
  return `${text.slice(0, most - MARK_LENGTH - 1).replace(/-+$/, '')}-${mark}`
}

const LONGEST_LABEL = 63
const LONGEST_DATABASE = 40

/** The first label of a preview's host name, which is the name of the app that runs it. */
export const previewName = (pattern: string, number: number, app: string): string =>
  shortened(
    pattern.replaceAll('{number}', () => String(number)).replaceAll('{app}', () => app),
    LONGEST_LABEL,
  )

/** Name of the copy of a database; names of databases begin with a letter. */
export const copyName = (preview: string, database: string): string =>
  shortened(`${/^[a-z]/.test(preview) ? '' : 'pr-'}${preview}-${database}`, LONGEST_DATABASE)
