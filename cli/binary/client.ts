import { runCommands } from '../run-commands.ts'
import { endWithReader, reportError } from '../report-error.ts'

/** What the binary does itself: the client, and help for everything. It tells of its own errors. */
export async function runClient(words: string[], version: string): Promise<void> {
  endWithReader(words)
  await runCommands(words, version).catch((error: unknown) => reportError(error, words))
}
export type RunClient = typeof runClient
