import { spawn } from 'node:child_process'

/** What a finished command said. */
export interface Finished {
  /** Exit code; 124 when it was stopped because its time was over, 127 when it could not be started. */
  code: number
  stdout: string
  stderr: string
}

/** How a command is run. Arguments are always an array: no shell ever reads them. */
export interface RunOptions {
  input?: string
  cwd?: string
  /** Added to our own environment; undefined takes a variable away. */
  env?: Record<string, string | undefined>
  timeout_ms?: number
  /** Called for each whole line of standard output; may ask to stop the command by returning `'stop'`. */
  on_line?: (line: string) => 'stop' | undefined | void
  signal?: AbortSignal
}

/** A command that had to succeed and did not; the message ends with the last lines it printed. */
export class CommandError extends Error {
  constructor(command: readonly string[], finished: Finished) {
    const said = `${finished.stdout}\n${finished.stderr}`.trim().split('\n').slice(-15).join('\n')
    super(`\`${command.join(' ')}\` failed with exit code ${finished.code}.\n${said}`)
    this.name = 'CommandError'
  }
}

/** Runs a command to its end and never throws: the caller decides what an exit code means. */
export function run(command: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const [file = '', ...args] = command
  return new Promise((resolve) => {
    const child = spawn(file, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
      signal: options.signal,
      killSignal: 'SIGTERM',
    })
    let stdout = '',
      stderr = '',
      rest = '',
      late = false
    const timer =
      options.timeout_ms === undefined
        ? undefined
        : setTimeout(() => {
            late = true
            child.kill('SIGTERM')
          }, options.timeout_ms)
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) if (options.on_line?.(line) === 'stop') child.kill('SIGTERM')
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    child.on('error', (error) => {
      clearTimeout(timer)
      resolve({ code: 127, stdout, stderr: `${stderr}${error.message}` })
    })
    child.on('close', (code) => {
      clearTimeout(timer)
      resolve({ code: late ? 124 : (code ?? 130), stdout, stderr })
    })
    // A command may end before it has read its input; that is not an error of ours.
    child.stdin.on('error', () => undefined)
    child.stdin.end(options.input ?? '')
  })
}

/** Runs a command that must succeed and returns its standard output. */
export async function must(command: readonly string[], options: RunOptions = {}): Promise<string> {
  const finished = await run(command, options)
  if (finished.code !== 0) throw new CommandError(command, finished)
  return finished.stdout
}
