const SENTENCES: Record<string, string> = {
  closed: 'It was closed.',
  connection_lost: 'The connection to the server was lost, and the shell has ended with it.',
  server_stopping: 'The server restarts.',
  no_shell: 'This image has no shell, so that no terminal can be opened in it.',
  instance_gone: 'The instance that it was open in has ended.',
  idle: 'Nothing was typed for half an hour.',
  too_long: 'A terminal stays open for twelve hours at most.',
}

/** Why a terminal ended, as a sentence. */
export const sentenceOf = (reason: string, exit_code: number | null): string =>
  Object.hasOwn(SENTENCES, reason)
    ? SENTENCES[reason]!
    : `The shell has ended${exit_code === null ? '' : ` with exit code ${exit_code}`}.`
