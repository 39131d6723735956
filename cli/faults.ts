import { CommandError } from './terminal.ts'

/** Of the host's own errors, those whose sentence is all that the operator needs. */
async function sentenceOf(error: unknown): Promise<string | undefined> {
  if (error instanceof CommandError) return error.message
  const { StartError, toStartError } = await import('#server/start/start-faults')
  const { SecretUnreadableError } = await import('#server/kernel/secrets')
  const known = toStartError(error, 'portreeve.db of the data directory')
  return known instanceof StartError || known instanceof SecretUnreadableError ? known.message : undefined
}

/** Tells of an error on standard error and sets the exit code; one that nobody foresaw comes with its stack. */
export async function tellError(error: unknown): Promise<void> {
  const text = (await sentenceOf(error)) ?? (error as Error).stack ?? String(error)
  process.stderr.write(`portreeve: ${text}\n`)
  process.exitCode = error instanceof CommandError ? error.exit_code : 1
}
