import { closeSync, createReadStream, existsSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { loadConfig } from '#server/kernel/config'
import { run } from '#server/kernel/process'
import { CommandError } from './terminal.ts'

export interface LogOptions {
  /** Goes on with lines as they are written. */
  follow: boolean
  /** Lines of what is there already. */
  lines: number
}

const UNIT = 'portreeve.service'
const UNIT_FILE = `/etc/systemd/system/${UNIT}`
/** The longest that a timer can wait: the log is followed until somebody ends the command. */
const FOR_EVER_MS = 2 ** 31 - 1
const LOOK_MS = 250
const PIECE_BYTES = 64 * 1024

/** Ends with the command, also when its output is closed (`portreeve logs | head`). */
function untilInterrupted(): AbortSignal {
  const controller = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => controller.abort())
  process.stdout.once('error', () => controller.abort())
  return controller.signal
}

async function fromJournal({ follow, lines }: LogOptions): Promise<void> {
  const argv = ['journalctl', '--unit', UNIT, '--output', 'cat', '--no-pager', '--lines', String(lines)]
  const result = await run(follow ? [...argv, '--follow'] : argv, {
    cwd: '/',
    timeout_ms: FOR_EVER_MS,
    signal: untilInterrupted(),
    onLine: (line, stream) => void process[stream].write(`${line}\n`),
  })
  if (result.exit_code !== 0 && !result.aborted)
    throw new CommandError('journalctl could not read the log; its message is above.')
}

/** Where the last lines of a file begin. */
function startOfLast(path: string, lines: number): number {
  const file = openSync(path, 'r')
  try {
    const { size } = fstatSync(file)
    let left = lines
    for (let end = size; end > 0; end -= PIECE_BYTES) {
      const begin = Math.max(0, end - PIECE_BYTES)
      const piece = Buffer.alloc(end - begin)
      readSync(file, piece, 0, piece.length, begin)
      for (let at = piece.length - 1; at >= 0; at--)
        // The end of the last line begins no other one.
        if (piece[at] === 10 && begin + at !== size - 1 && --left <= 0) return begin + at + 1
    }
    return 0
  } finally {
    closeSync(file)
  }
}

/** Writes a file from a place on; answers with the place where it ended. */
async function copyFrom(path: string, start: number, signal: AbortSignal): Promise<number> {
  let at = start
  for await (const piece of createReadStream(path, { start, signal })) {
    process.stdout.write(piece as Buffer)
    at += (piece as Buffer).length
  }
  return at
}

async function fromFile(path: string, { follow, lines }: LogOptions): Promise<void> {
  const signal = untilInterrupted()
  try {
    let at = await copyFrom(path, lines === 0 ? statSync(path).size : startOfLast(path, lines), signal)
    while (follow) {
      await delay(LOOK_MS, undefined, { signal })
      const { size } = statSync(path)
      // The supervisor cuts a file that became too long.
      if (size < at) at = 0
      if (size > at) at = await copyFrom(path, at, signal)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** `portreeve logs`: what the server writes, from systemd or from our own supervisor. */
export async function showLogs(env: Record<string, string | undefined>, options: LogOptions): Promise<void> {
  const { data_directory } = loadConfig(env)
  const file = join(data_directory, 'supervisor', 'portreeve.log')
  if (existsSync('/run/systemd/system') && existsSync(UNIT_FILE)) return fromJournal(options)
  if (existsSync(file)) return fromFile(file, options)
  throw new CommandError(
    `There is no log: install.sh has started no Portreeve in the background with ${data_directory}. A server that was started by hand writes to its own terminal.`,
  )
}
