/** A shell line of a user becomes part of a Dockerfile in these two shapes only, so that no text of it can be an instruction. */

const PLAIN_WORD = /^[A-Za-z0-9_./:@%+,=-]+$/
const SHELL_KEYWORDS = new Set(['cd', 'export', 'source', '.', 'if', 'for', 'while', 'set', 'exec', 'eval', 'trap', 'ulimit', 'umask', '{', '!', 'time', 'case'])

/**
 * The argument array that runs a start command. A plain line runs without a shell; any other runs in a shell that is replaced
 * by the command, so that the container's stop signal reaches the app.
 */
export function commandArguments(line: string): string[] {
  const command = line.trim()
  const words = command.split(/[ \t]+/)
  if (words.every((word) => PLAIN_WORD.test(word)) && !isAssignment(words[0]!) && !SHELL_KEYWORDS.has(words[0]!)) return words
  return ['/bin/sh', '-c', replacesShell(command, words) ? `exec ${isAssignment(words[0]!) ? 'env ' : ''}${command}` : command]
}

/** `exec` in front is right only where the line is one simple command. */
function replacesShell(command: string, words: readonly string[]): boolean {
  return !/[;&|\n<>()`]/.test(command) && !SHELL_KEYWORDS.has(words[0]!)
}

function isAssignment(word: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*=/.test(word)
}

/** One shell word, quoted only where it must be. */
export function shellWord(text: string): string {
  return PLAIN_WORD.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** A package script that is one plain program, so that it can be started without the package manager in between. */
export function isSimpleCommand(line: string): boolean {
  return !/[;&|\n<>()`$]/.test(line) && !SHELL_KEYWORDS.has(line.trim().split(/[ \t]+/)[0] ?? '')
}
