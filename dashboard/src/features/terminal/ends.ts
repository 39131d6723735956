const SENTENCES: Record<string, string> = {
  closed: 'It was closed.',
  connection_lost: 'The connection to the server was lost, and the shell has ended with it.',
  no_connection: 'There is no connection to the server.',
  refused: 'The terminal could not be opened.',
  server_stopping: 'The server restarts.',
  no_shell: 'This image has no shell, so that no terminal can be opened in it.',
  instance_gone: 'The instance that it was open in has ended.',
  idle: 'Nothing was typed for half an hour.',
  too_long: 'A terminal stays open for twelve hours at most.',
}

/** Ends of the way to the shell, not of the shell itself. */
const LOST = new Set(['connection_lost', 'no_connection', 'server_stopping'])

/** Why a terminal ended, and what can be done about it. */
export function endOf(reason: string, exit_code: number | null, message?: string) {
  const code = exit_code === null ? '' : ` with exit code ${exit_code}`
  const known = Object.hasOwn(SENTENCES, reason) ? SENTENCES[reason]! : `The shell has ended${code}.`
  return LOST.has(reason)
    ? { title: 'The connection was lost', sentence: message ?? known, action: 'Reconnect' }
    : { title: 'The terminal has ended', sentence: message ?? known, action: 'Open a new one' }
}

/**
 * Begins a new shell below what the last one printed: off go another screen, colours and the ways of telling keys and
 * the mouse that its last program chose.
 */
export const ANEW = `${['?1049l', '!p', '?1000l', '?1002l', '?1003l', '?1006l', '?2004l', '0m'].map((code) => `\x1b[${code}`).join('')}\r\n`
