import { EngineError } from '../engine.ts'
import { engineWords, saysDiskFull } from '../failures.ts'

/** Why a container could not be started, in a user's words; other errors are handed through. */
export function startError(error: unknown): unknown {
  if (!(error instanceof EngineError)) return error
  const text = error.cause instanceof Error ? error.cause.message : error.message
  if (error.code === 'not_found' && /no such image/i.test(text)) {
    return new EngineError(
      'image_not_found',
      'The image of this release is no longer on this machine.',
      'Deploy the app again to build or pull it.',
      { cause: error },
    )
  }
  if (error.code !== 'failed' && error.code !== 'not_found') return error
  const port =
    /(?:port is already allocated|address already in use)/i.test(text) && /:(\d+)\b/.exec(text)?.[1]
  if (port) {
    return new EngineError(
      'port_taken',
      `Port ${port} of the server is taken by another program.`,
      'Choose another port.',
      { cause: error },
    )
  }
  if (saysDiskFull(text)) return error
  const command = /exec: \\?"([^"\\]+)\\?"/.exec(text)?.[1]
  if (/executable file not found|no such file or directory/i.test(text) && /exec|oci|runc/i.test(text))
    return missingProgram(command, error)
  if (/permission denied/i.test(text)) return forbiddenProgram(command, error)
  if (/unable to find user|no matching entries in passwd|unable to find group/i.test(text)) {
    return new EngineError(
      'start_failed',
      'The user named in the Dockerfile does not exist in the image, so the container could not start.',
      'Create the user in the Dockerfile before the USER line.',
      { cause: error },
    )
  }
  if (/oci runtime|runc|no command specified|minimum memory limit|invalid/i.test(text)) {
    return new EngineError(
      'start_failed',
      `The container could not start: ${engineWords(text)}`,
      'Check the start command of the app.',
      { cause: error },
    )
  }
  return error
}

/**
 * The init process reports a program that it cannot run in the container's log, and ends with the shell's
 * codes for it.
 */
const INIT_FAILURE = /^\[FATAL tini \(\d+\)\] exec (.+) failed: (.+)$/
const INIT_EXIT_CODES: readonly number[] = [126, 127]

/** What the init process said about the program, if this line of the log is its complaint. */
export function initError(line: string): EngineError | undefined {
  const complaint = INIT_FAILURE.exec(line)
  if (!complaint) return undefined
  return /permission denied/i.test(complaint[2] ?? '')
    ? forbiddenProgram(complaint[1], line)
    : missingProgram(complaint[1], line)
}

/** Why an instance with this exit code and these last lines never ran its program; nothing when it did. */
export function unstartable(
  exit_code: number | undefined,
  lines: readonly string[],
): EngineError | undefined {
  if (!INIT_EXIT_CODES.includes(exit_code ?? 0)) return undefined
  return lines.map(initError).find((found) => found !== undefined)
}

const programName = (command: string | undefined): string =>
  command ? `The program \`${engineWords(command)}\`` : 'The start command'

function missingProgram(command: string | undefined, cause: unknown): EngineError {
  return new EngineError(
    'start_failed',
    `${programName(command)} does not exist in the image, so the container could not start.`,
    'Check the start command, and that the build installs the program into the image.',
    { cause },
  )
}

function forbiddenProgram(command: string | undefined, cause: unknown): EngineError {
  return new EngineError(
    'start_failed',
    `${programName(command)} is not executable in the image, so the container could not start.`,
    'Give the file its executable bit (`chmod +x`), or start it through its interpreter.',
    { cause },
  )
}
