import { unwritable } from '#server/kernel/dotenv'

/** What an export says in the place of a secret. */
export const unrevealed = (key: string): string => `# ${key} is a secret; reveal=true writes it.`
/** What it says in the place of what nobody can read. */
export const unreadable = (key: string): string =>
  `# ${key} cannot be read with the key of this installation.`

const LINES = [unrevealed, unreadable, unwritable].map((line) => line('').slice(3, -1)).join('|')
const LINE = new RegExp(`^# (\\w+) (?:${LINES})\\.\\r?$`, 'gm')

/** Variables that a text only names, since it is an export. */
export const namedIn = (text: string): string[] => [...text.matchAll(LINE)].map(([, key]) => key!)
