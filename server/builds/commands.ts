import { PLAIN_WORD } from '#server/kernel/shell-word'

/**
 * A shell line of a user becomes part of a Dockerfile in these two shapes only, so that no text of it can be
 * an instruction.
 */

const SHELL_KEYWORDS = new Set([
  'cd',
  'export',
  'source',
  '.',
  'if',
  'for',
  'while',
  'set',
  'exec',
  'eval',
  'trap',
  'ulimit',
  'umask',
  '{',
  '!',
  'time',
  'case',
])

/**
 * The argument array that runs a start command. A plain line runs without a shell; any other runs in a shell
 * that is replaced by the command, so that the container's stop signal reaches the app.
 */
export function commandArguments(line: string): string[] {
  const command = line.trim()
  const words = command.split(/[ \t]+/)
  if (
    words.every((word) => PLAIN_WORD.test(word)) &&
    !isAssignment(words[0]!) &&
    !SHELL_KEYWORDS.has(words[0]!)
  )
    return words
  return [
    '/bin/sh',
    '-c',
    replacesShell(command, words) ? `exec ${isAssignment(words[0]!) ? 'env ' : ''}${command}` : command,
  ]
}

/** `exec` in front is right only where the line is one simple command. */
function replacesShell(command: string, words: readonly string[]): boolean {
  return !/[;&|\n<>()`]/.test(command) && !SHELL_KEYWORDS.has(words[0]!)
}

function isAssignment(word: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*=/.test(word)
}

/**
 * A package script that is one plain program, so that it can be started without the package manager in
 * between.
 */
export function isSimpleCommand(line: string): boolean {
  return !/[;&|\n<>()`$]/.test(line) && !SHELL_KEYWORDS.has(line.trim().split(/[ \t]+/)[0] ?? '')
}

const PORT_OPTION =
  /(?:^|\s)(?:-p|-l|--port|--listen|--server\.port|--http-port|--tcp|-Dserver\.port|-Dhttp\.port)[= ](?:tcp:\/\/)?(?:[\w.*[\]:]{1,40}:)?(\d{2,5})(?=\s|$)/
const PORT_OF_BIND =
  /(?:^|\s)(?:-b|--bind|-a|--address|--addr|--urls)[= ](?:\w{1,5}:\/\/)?[\w.*[\]]{0,40}:(\d{2,5})(?=\s|$)/
const PORT_VARIABLE = /(?:^|\s)PORT=(\d{2,5})\s/

/**
 * The port that a start command insists on, by an option or a variable with a plain number; nothing when it
 * reads `$PORT`.
 */
export function portOfCommand(line: string): number | undefined {
  if (/\$\{?PORT\b/.test(line)) return undefined
  const found = (PORT_OPTION.exec(line) ?? PORT_OF_BIND.exec(line) ?? PORT_VARIABLE.exec(line))?.[1]
  return found !== undefined && Number(found) > 0 && Number(found) < 65_536 ? Number(found) : undefined
}
