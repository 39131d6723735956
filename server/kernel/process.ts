import { spawn, type ChildProcess } from 'node:child_process'
import { constants } from 'node:os'
import type { Readable } from 'node:stream'
import { createPace } from './pace.ts'

/**
 * What may be said about a command that is to run. Nothing is inherited from the server but what is given
 * here.
 */
export interface RunOptions {
  /** Folder that the command runs in. */
  cwd: string
  /** The complete environment, except for PATH, LC_ALL and LANG, which have fixed defaults. */
  env?: Record<string, string>
  signal?: AbortSignal
  /** Wall time after which the command and everything it started is killed. Default 60,000. */
  timeout_ms?: number
  /** Bytes kept of stdout and of stderr each: the first of stdout, the last of stderr. Default 1 MiB. */
  max_output_bytes?: number
  /**
   * Receives each line of output (without its end, cut at 8 KiB) as it comes; `\r` ends a line too, as
   * progress bars use it.
   */
  onLine?: (line: string, stream: 'stdout' | 'stderr') => void
  /** Bytes for standard input; it is closed at once when absent. */
  stdin?: string | Uint8Array
  /** Secrets handed over as inherited file descriptors 3, 4, …: in no argument list, environment or file. */
  descriptors?: readonly string[]
  uid?: number
  gid?: number
}

/** How a command ended. A non-zero exit code is a result, not an exception. */
export interface RunResult {
  /** 128 + signal number when a signal ended it, as shells count. */
  exit_code: number
  stdout: string
  stderr: string
  timed_out: boolean
  aborted: boolean
  /** True when stdout or stderr was longer than `max_output_bytes`. */
  truncated: boolean
  duration_ms: number
}

/** The command could not be started: not installed, or the folder is missing. */
export class SpawnError extends Error {
  readonly code: string
  constructor(command: string, code: string, options?: ErrorOptions) {
    super(`Cannot start ${command} (${code}).`, options)
    this.name = 'SpawnError'
    this.code = code
  }
}

/** Runs a program from an argument list. Kept as a type so that a caller can be handed a wrapper. */
export type Run = (argv: readonly string[], options: RunOptions) => Promise<RunResult>

const BASE_ENVIRONMENT = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
  LANG: 'C',
}
const DEFAULT_TIMEOUT_MS = 60_000
const DEFAULT_OUTPUT_BYTES = 1024 ** 2
const MAX_LINE = 8192
/** Time between SIGTERM and SIGKILL; the whole group is gone within two seconds of an abort. */
const GRACE_MS = 1500

/** Keeps a bounded part of a stream: its head, or its tail (errors are at the end of stderr). */
function createCapture(max_bytes: number, keep: 'head' | 'tail') {
  let chunks: Buffer[] = []
  let size = 0
  let truncated = false
  return {
    add(chunk: Buffer): void {
      if (keep === 'head') {
        const part = chunk.subarray(0, max_bytes - size)
        truncated ||= part.length < chunk.length
        if (part.length > 0) chunks.push(part)
        size += part.length
        return
      }
      chunks.push(chunk)
      size += chunk.length
      if (size > 2 * max_bytes) {
        chunks = [Buffer.concat(chunks).subarray(-max_bytes)]
        size = max_bytes
        truncated = true
      }
    },
    text(): string {
      const all = Buffer.concat(chunks)
      truncated ||= all.length > max_bytes
      return (keep === 'head' ? all : all.subarray(-max_bytes)).toString('utf8')
    },
    get truncated() {
      return truncated
    },
  }
}

/** Cuts a stream into lines; one without end cannot grow without bound. */
function createLineCutter(onLine: (line: string) => void) {
  const decoder = new TextDecoder()
  let rest = ''
  const flush = (text: string): void => {
    const lines = (rest + text).split(/\r\n|\n|\r/)
    rest = lines.pop()!
    for (const line of lines) if (line !== '') onLine(line.slice(0, MAX_LINE))
    if (rest.length > MAX_LINE) rest = rest.slice(0, MAX_LINE)
  }
  return {
    add: (chunk: Buffer) => flush(decoder.decode(chunk, { stream: true })),
    end: () => flush('\n'),
  }
}

/** Signals the command's whole process group; it has one of its own because it was started detached. */
function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal)
  } catch {
    // ESRCH: every process of the group has ended already, which is what was wanted.
  }
}

/** Ends the group politely, then by force. Returns a function that stops waiting for the second step. */
function endGroup(pid: number): () => void {
  signalGroup(pid, 'SIGTERM')
  const timer = setTimeout(signalGroup, GRACE_MS, pid, 'SIGKILL')
  return () => clearTimeout(timer)
}

function start(argv: readonly string[], options: RunOptions): ChildProcess {
  const [command, ...args] = argv
  if (!command || argv.some((arg) => arg.includes('\0')))
    throw new TypeError('An argument list needs a command and may hold no NUL.')
  return spawn(command, args, {
    cwd: options.cwd,
    env: { ...BASE_ENVIRONMENT, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe', ...(options.descriptors ?? []).map(() => 'pipe' as const)],
    detached: true,
    shell: false,
    windowsHide: true,
    ...(options.uid === undefined ? {} : { uid: options.uid }),
    ...(options.gid === undefined ? {} : { gid: options.gid }),
  })
}

/**
 * Writes standard input and the extra descriptors; a command that ends without reading them is no error here.
 */
function feed(child: ChildProcess, { stdin, descriptors = [] }: RunOptions): void {
  child.stdin!.on('error', () => {})
  child.stdin!.end(stdin)
  descriptors.forEach((content, index) => {
    const pipe = child.stdio[index + 3] as NodeJS.WritableStream
    pipe.on('error', () => {})
    pipe.end(content)
  })
}

const exitCode = (code: number | null, signal: NodeJS.Signals | null): number =>
  code ?? 128 + (signal ? constants.signals[signal] : 0)

/** Watches the time limit and the abort signal; either ends the group once. */
function guard(child: ChildProcess, { timeout_ms = DEFAULT_TIMEOUT_MS, signal }: RunOptions) {
  let reason: 'timeout' | 'abort' | undefined
  let stopWaiting = (): void => {}
  const end = (why?: 'timeout' | 'abort'): void => {
    if (child.pid === undefined || reason) return
    reason = why
    stopWaiting()
    stopWaiting = endGroup(child.pid)
  }
  const onAbort = (): void => end('abort')
  const timer = setTimeout(end, timeout_ms, 'timeout')
  signal?.addEventListener('abort', onAbort, { once: true })
  return {
    end,
    get reason() {
      return reason
    },
    release(): void {
      clearTimeout(timer)
      stopWaiting()
      signal?.removeEventListener('abort', onAbort)
    },
  }
}

/**
 * Hands over what a stream brings, with others served in between: a pipe that is read as fast as a program fills
 * it keeps the main thread for megabytes in one piece, and eight of them did so for half a second.
 * @returns a function that has the rest handed over without a rest.
 */
function readInPieces(stream: Readable, take: (chunk: Buffer) => void): () => void {
  const pace = createPace('programs')
  let is_hurried = false
  stream.on('data', (chunk: Buffer) => {
    take(chunk)
    const rest = is_hurried ? undefined : pace.rest()
    if (!rest) return
    stream.pause()
    void rest.then(() => stream.resume())
  })
  return () => {
    is_hurried = true
    stream.resume()
  }
}

/**
 * After the command's end, kills what it left in its group and stops reading from what escaped with its
 * pipes.
 */
function closeAfterExit(child: ChildProcess, hurry: () => void): void {
  child.once('exit', () => {
    signalGroup(child.pid!, 'SIGKILL')
    const timer = setTimeout(() => {
      // What it printed itself is in the pipes, and is read in the round that follows.
      hurry()
      setImmediate(() => {
        for (const stream of child.stdio) stream?.destroy()
      })
    }, GRACE_MS)
    child.once('close', () => clearTimeout(timer))
  })
}

/**
 * Runs a program without a shell and waits for it. An abort or the time limit ends it together with every
 * process it started.
 * Rejects only when it cannot be started, or with what `onLine` threw.
 */
export const run: Run = (argv, options) =>
  new Promise<RunResult>((resolve, reject) => {
    const began = performance.now()
    const max_bytes = options.max_output_bytes ?? DEFAULT_OUTPUT_BYTES
    const captures = {
      stdout: createCapture(max_bytes, 'head'),
      stderr: createCapture(max_bytes, 'tail'),
    }
    let failure: { error: unknown } | undefined
    const finish = (exit_code: number, reason?: 'timeout' | 'abort'): void => {
      if (failure) return reject(failure.error)
      const texts = { stdout: captures.stdout.text(), stderr: captures.stderr.text() }
      resolve({
        exit_code,
        ...texts,
        timed_out: reason === 'timeout',
        aborted: reason === 'abort',
        truncated: captures.stdout.truncated || captures.stderr.truncated,
        duration_ms: Math.round(performance.now() - began),
      })
    }
    if (options.signal?.aborted) return finish(exitCode(null, 'SIGTERM'), 'abort')

    const child = start(argv, options)
    const watch = guard(child, options)
    const readings = (['stdout', 'stderr'] as const).map((name) => {
      const cutter = createLineCutter((line) => {
        if (failure) return
        try {
          options.onLine?.(line, name)
        } catch (error) {
          failure = { error }
          watch.end()
        }
      })
      const hurry = readInPieces(child[name]!, (chunk) => {
        captures[name].add(chunk)
        cutter.add(chunk)
      })
      return { end: cutter.end, hurry }
    })
    child.once('error', (error: NodeJS.ErrnoException) => {
      watch.release()
      reject(new SpawnError(argv[0]!, error.code ?? 'unknown', { cause: error }))
    })
    child.once('close', (code, signal) => {
      watch.release()
      for (const { end } of readings) end()
      finish(exitCode(code, signal), watch.reason)
    })
    if (child.pid === undefined) return
    closeAfterExit(child, () => readings.forEach(({ hurry }) => hurry()))
    feed(child, options)
  })
