import { fileReason, fileSentence } from '#server/kernel/file-faults'
import { CommandError, jsonText, plain } from './terminal.ts'

/** Names of the exit codes for programs that read the error instead; the API's own codes say more. */
const CODES: Record<number, string> = {
  2: 'USAGE',
  3: 'NOT_FOUND',
  4: 'DENIED',
  5: 'REFUSED',
  6: 'UNREACHABLE',
  130: 'INTERRUPTED',
}

function codeOf(error: unknown, exit_code: number): string {
  // A refusal of the API has its code, and keeps it where a sentence was put before it.
  const { cause } = error as { cause?: unknown }
  const refusal = [error, cause].find((one) => one instanceof CommandError && 'code' in one)
  return (refusal as { code?: string } | undefined)?.code ?? CODES[exit_code] ?? 'FAILED'
}

/** Whether programs read the answer: what follows `--` belongs to another command. */
function isForPrograms(words: readonly string[]): boolean {
  const end = words.indexOf('--')
  return words.slice(0, end === -1 ? undefined : end).includes('--json')
}

/**
 * Tells of an error on standard error, with `--json` as one line of JSON, and sets the exit code.
 * One that nobody foresaw comes with its stack.
 * @param sentence what the caller knows it to mean.
 */
export function reportError(error: unknown, words: readonly string[], sentence?: string): void {
  const exit_code = error instanceof CommandError ? error.exit_code : 1
  const ours = error instanceof CommandError ? error.message : (sentence ?? fileSentence(error))
  const text = ours ?? (error as Error).stack ?? String(error)
  const shown = isForPrograms(words)
    ? jsonText({ error: { code: codeOf(error, exit_code), message: text } })
    : `portreeve: ${text}`
  process.stderr.write(`${plain(shown, process.stderr)}\n`)
  process.exitCode = exit_code
}

/**
 * Ends with whoever read what is printed, as other programs do: `portreeve apps | head -1`; and
 * with a sentence where it cannot be written, as on a full disk.
 */
export function endWithReader(words: readonly string[]): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit()
    const reason = fileReason(error) ?? error.code ?? error.message
    reportError(error, words, `What this prints cannot be written: ${reason}.`)
    process.exit()
  })
}
