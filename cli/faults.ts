import { reportError } from './report-error.ts'
import { CommandError } from './terminal.ts'

/** Of the host's own errors, those whose sentence is all that the operator needs. */
async function sentenceOf(error: unknown): Promise<string | undefined> {
  if (error instanceof CommandError) return error.message
  const { StartError, toStartError } = await import('#server/start/start-faults')
  const { SecretUnreadableError } = await import('#server/kernel/secrets')
  const known = toStartError(error, 'portreeve.db of the data directory')
  return known instanceof StartError || known instanceof SecretUnreadableError ? known.message : undefined
}

/** Tells of an error, the host's own ones among them. */
export async function tellError(error: unknown, words: readonly string[]): Promise<void> {
  reportError(error, words, await sentenceOf(error))
}
