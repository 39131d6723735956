import type { Readable } from 'node:stream'
import { Fatal } from '#server/kernel/jobs/definition'

/** Of a table from which nearly everything was deleted, a server reads for a while before it prints a row. */
export const SILENCE_LIMIT_MS = 30 * 60_000

/**
 * Ends a program that prints nothing any more, with an error for whoever reads. Who has the login
 * of an app can lock a table for as long as they like, and what waits for it would hold a place of
 * all backups.
 * @param printed what the program prints
 * @param whole the same on its way to the reader
 * @returns a signal that aborts with the other one, and when the program is to end
 */
export function untilSilent(
  program: string,
  { printed, whole }: { printed: Readable; whole: Readable },
  signal: AbortSignal,
): AbortSignal {
  const silence = new AbortController()
  const timer = setTimeout(() => {
    // What is there waits for its reader, who may take the time.
    if (printed.readableLength + whole.readableLength > 0) return void timer.refresh()
    whole.destroy(
      new Fatal(
        'command_failed',
        `${program} printed nothing for ${SILENCE_LIMIT_MS / 60_000} minutes and was ended.`,
        'Look whether a transaction of the database keeps a table locked. End it, then try again.',
      ),
    )
    silence.abort()
  }, SILENCE_LIMIT_MS)
  printed.on('data', () => timer.refresh())
  whole.once('close', () => clearTimeout(timer))
  return AbortSignal.any([signal, silence.signal])
}
