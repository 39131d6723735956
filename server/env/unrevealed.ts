/** What an export says in the place of a secret. */
export const unrevealed = (key: string): string => `# ${key} is a secret; reveal=true writes it.`

const LINE = /^# (\w+) is a secret; reveal=true writes it\.\r?$/gm

/** Secrets that a text only names, since it is an export. */
export const namedIn = (text: string): string[] => [...text.matchAll(LINE)].map(([, key]) => key!)
