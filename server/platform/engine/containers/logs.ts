import { setTimeout as wait } from 'node:timers/promises'
import { answeredWithin } from '#server/kernel/deadline'
import type { Connection } from '../connection.ts'
import type { ContainerInfo, Containers } from './containers.ts'
import { EngineError, type LogLine, type LogOptions } from '../engine.ts'
import { toEngineError } from '../failures.ts'
import { cleanLine, createLineSplitter, LINE_LIMIT } from './log-lines.ts'

/** An exited container that is followed is looked at again after this time: it may be started again. */
const EXITED_PAUSE_MS = 500
/**
 * After so many bytes at once the engine's follower may have lost its place: it does not see when its file is
 * replaced twice while it reads, and tells nothing any more. Then silence is not believed.
 */
const FLOOD_BYTES = 4 * 1024 * 1024
const SILENCE_MS = 1_000
/** Where looking again found nothing, the next look comes later: each reads what the engine keeps. */
const LONGEST_SILENCE_MS = 60_000
const HEADER_BYTES = 8
/** Frames carry at most 16 KiB of text; more than this is not the engine's framing. */
const FRAME_LIMIT_BYTES = 4 * 1024 * 1024
const TIMESTAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)) ?/

interface Frame {
  stream: LogLine['stream']
  text: Buffer
}

/**
 * Cuts the engine's multiplexed stream into frames: a byte for the stream, three of padding, four of length,
 * the text.
 */
export async function* readFrames(source: AsyncIterable<Buffer>): AsyncGenerator<Frame> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of source) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let offset = 0
    while (rest.length - offset >= HEADER_BYTES) {
      const kind = rest[offset]
      const length = rest.readUInt32BE(offset + 4)
      if (kind === undefined || kind > 2 || length > FRAME_LIMIT_BYTES)
        throw new EngineError('failed', 'The log of the container cannot be read.')
      if (rest.length - offset < HEADER_BYTES + length) break
      yield {
        stream: kind === 2 ? 'stderr' : 'stdout',
        text: rest.subarray(offset + HEADER_BYTES, offset + HEADER_BYTES + length),
      }
      offset += HEADER_BYTES + length
    }
    rest = rest.subarray(offset)
  }
}

/**
 * Makes lines of frames. Each frame begins with a time; the engine spreads a line of more than 16 KiB over
 * several frames, of which only the last ends in a newline.
 */
export async function* readLines(frames: AsyncIterable<Frame>): AsyncGenerator<LogLine> {
  const open: Record<
    LogLine['stream'],
    { at: string; text: string; bytes: Buffer[]; size: number } | undefined
  > = {
    stdout: undefined,
    stderr: undefined,
  }
  for await (const { stream, text } of frames) {
    const head = text.subarray(0, 64).toString('latin1')
    const time = TIMESTAMP.exec(head)
    const body = text.subarray(time?.[0].length ?? 0)
    const line = (open[stream] ??= {
      at: time?.[1] ?? new Date(0).toISOString(),
      text: '',
      bytes: [],
      size: 0,
    })
    const complete = body.at(-1) === 0x0a
    if (line.size <= LINE_LIMIT * 4) line.bytes.push(complete ? body.subarray(0, -1) : Buffer.from(body))
    line.size += body.length
    if (!complete) continue
    open[stream] = undefined
    yield { at: line.at, stream, text: lineText(Buffer.concat(line.bytes)) }
  }
  for (const stream of ['stdout', 'stderr'] as const) {
    const line = open[stream]
    if (line) yield { at: line.at, stream, text: lineText(Buffer.concat(line.bytes)) }
  }
}

/** The same rules as for build logs: last state of a progress bar, bounded, clean. */
function lineText(bytes: Buffer): string {
  const lines: string[] = []
  const splitter = createLineSplitter((text) => lines.push(text))
  splitter.write(bytes)
  splitter.end()
  return lines.join(' ')
}

/** Lines of a container with a terminal: one stream without frames, a time at the start of each line. */
async function* readTerminal(source: AsyncIterable<Buffer>): AsyncGenerator<LogLine> {
  const ready: LogLine[] = []
  const splitter = createLineSplitter((text) => {
    const time = TIMESTAMP.exec(text)
    ready.push({
      at: time?.[1] ?? new Date(0).toISOString(),
      stream: 'stdout',
      text: cleanLine(text.slice(time?.[0].length ?? 0)),
    })
  })
  for await (const chunk of source) {
    splitter.write(chunk)
    yield* ready.splice(0)
  }
  splitter.end()
  yield* ready
}

/** Where a reader has got to: how many lines with the latest time it has had. */
function createMark() {
  let at = ''
  let count = 0
  let skip = 0
  return {
    at: () => at || undefined,
    /** The next pass begins at the mark and shows those lines again. */
    rewind(): void {
      skip = count
    },
    isNew(line: LogLine): boolean {
      if (line.at === at && skip > 0) {
        skip -= 1
        return false
      }
      count = line.at === at ? count + 1 : 1
      at = line.at
      skip = 0
      return true
    },
  }
}

/** Ends like its source, or once that was silent for so long after a flood. */
async function* untilSilent(source: AsyncIterable<Buffer>, silence_ms: number): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]()
  for (let bytes = 0; ; ) {
    const next = chunks.next()
    // What comes of it after the silence is nobody's.
    next.catch(() => {})
    const chunk = await (bytes < FLOOD_BYTES ? next : answeredWithin(silence_ms, next, undefined))
    if (!chunk || chunk.done) return
    bytes += chunk.value.length
    yield chunk.value
  }
}

/**
 * One reading of the log: what is there and, with `follow`, what comes until this life of the container ends.
 */
async function* readPass(
  connection: Connection,
  info: ContainerInfo,
  options: LogOptions & { silence_ms: number },
  signal?: AbortSignal,
): AsyncGenerator<LogLine> {
  const answer = await connection.stream({
    path: `/containers/${encodeURIComponent(info.Id)}/logs`,
    signal,
    query: {
      stdout: true,
      stderr: true,
      timestamps: true,
      follow: options.follow ?? false,
      tail: options.tail ?? 'all',
      since: seconds(options.since),
      until: seconds(options.until),
    },
  })
  try {
    const source = options.follow ? untilSilent(answer, options.silence_ms) : answer
    yield* info.Config.Tty ? readTerminal(source) : readLines(readFrames(source))
  } finally {
    answer.destroy()
  }
}

/**
 * Reads a container's log. The reader sets the pace: while it does not ask for lines, nothing is read from
 * the engine, so a container that floods its log costs no memory here. The engine's own follower ends with
 * each life of a container, can miss its last words and loses its place in a flood, so following means reading
 * again from the last line, until the container is gone or, on wish, has exited.
 */
export async function* containerLogs(
  connection: Connection,
  containers: Containers,
  id: string,
  options: LogOptions & { until_exit?: boolean },
  signal?: AbortSignal,
): AsyncGenerator<LogLine> {
  const mark = createMark()
  let window: LogOptions = options
  let silence_ms = SILENCE_MS
  let was_there = false
  try {
    while (!signal?.aborted) {
      const info = await containers.find(id, signal)
      if (!info && !was_there) throw new EngineError('not_found', 'There is no such instance.')
      if (!info) return
      was_there = true
      let is_silent = true
      for await (const line of readPass(connection, info, { ...window, silence_ms }, signal)) {
        if (!mark.isNew(line)) continue
        is_silent = false
        yield line
      }
      silence_ms = is_silent ? Math.min(silence_ms * 2, LONGEST_SILENCE_MS) : SILENCE_MS
      const lives = info.State.Running
      if (!options.follow || (options.until_exit && !lives)) return
      if (!lives) await wait(EXITED_PAUSE_MS, undefined, { signal })
      mark.rewind()
      window = { follow: true, since: mark.at() ?? options.since, until: options.until }
    }
  } catch (error) {
    if (signal?.aborted) return
    const known = toEngineError(error)
    // The log of a container that is being removed, or was since it was asked about, cannot be read any more; it
    // ends here like that of a removed one.
    if (options.follow && was_there && ['conflict', 'not_found'].includes(known.code)) return
    throw known
  }
}

/** The engine takes times as seconds with a fraction. */
function seconds(time: string | undefined): string | undefined {
  if (time === undefined) return undefined
  const nanos = /\.(\d+)/.exec(time)?.[1]?.padEnd(9, '0').slice(0, 9) ?? '000000000'
  return `${Math.floor(Date.parse(time) / 1000)}.${nanos}`
}
