import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '#server/kernel/log'
import { createPace } from '#server/kernel/pace'
import type { EdgeRequest, RequestFollowing } from '../ingress.ts'
import type { MasterCli } from '../runtime/master-cli.ts'
import { LOG_RING } from '../render/log.ts'
import { parseRequestLine } from './line.ts'
import { parseStatistics } from './statistics.ts'
import { createSkip, type Skip } from './skip.ts'
import { connectUnix } from '../runtime/unix-socket.ts'

/**
 * Reads what the edge's workers log, each from the memory of the worker itself: the edge waits for nobody,
 * and what came while nobody read is still there as far as that memory reaches.
 */
export interface RequestFollower {
  follow(options: RequestFollowing): void
  /** Looks at once for a new worker, after a reload. */
  refresh(): void
}

/**
 * One worker that is read. An old one lives on while it is listened to, so it is let go when it serves nobody
 * any more.
 */
interface Attachment {
  socket: Socket
  idle_looks: number
}
type Emit = (source: string, lines: string[]) => Promise<void>

const LOOK_MS = 2_000
/** Between two looks at least, whatever wakes us. */
const SHORTEST_MS = 100
/** Looks without any client before an old worker is let go; what it logged last has arrived by then. */
const IDLE_LOOKS = 2
/** Old workers that were there before us cannot be listened to, only asked. */
const ASK_EVERY_LOOKS = 10
/**
 * Beyond this, reading pauses until the next second and the edge forgets the oldest lines: a flood costs no
 * more than this.
 */
const MAX_LINES_PER_SECOND = 20_000
/** Lines that are told in one piece: some milliseconds of work, of the thousands that a worker may have kept for us. */
const TOLD_AT_ONCE = 100

export function createRequestFollower({
  socket_path,
  cli,
  log,
}: {
  socket_path: string
  cli: MasterCli
  log: Log
}): RequestFollower {
  const attached = new Map<number, Attachment>()
  let wake: (() => void) | undefined

  /** Asks who the worker is, and then for all that it knows and will know. */
  function attach(skipOf: (source: string) => Skip, emit: Emit, signal: AbortSignal): void {
    const socket = connectUnix(socket_path)
    let source: string | undefined
    let [pid, rest, window_ms, in_window] = [0, '', 0, 0]
    let skip: Skip | undefined
    /** What was read is told in its order, and nothing more is read meanwhile. */
    let telling = Promise.resolve()
    const tell = (lines: string[]) => {
      const of = source!
      telling = telling
        .then(() => emit(of, lines))
        .catch((error: unknown) => log.warn('Requests of the edge could not be listed', { error }))
      return telling
    }
    const settle = () => {
      if (!skip || source === undefined) return
      clearInterval(settling)
      void tell(skip.end())
    }
    const settling = setInterval(settle, 1_000).unref()
    const takeHead = (): boolean => {
      const head = readHead(rest)
      if (!head) return false
      ;({ pid, source, rest } = head)
      if (attached.has(pid)) return socket.destroy(), false
      attached.set(pid, { socket, idle_looks: 0 })
      skip = skipOf(source)
      return true
    }
    socket.setEncoding('utf8')
    socket.on('data', (chunk: string) => {
      rest += chunk
      if (source === undefined && !takeHead()) return
      const lines = rest.split('\n')
      rest = lines.pop() ?? ''
      const now = performance.now()
      if (now - window_ms >= 1_000) [window_ms, in_window] = [now, 0]
      in_window += lines.length
      const pause_ms = in_window > MAX_LINES_PER_SECOND ? 1_000 - (now - window_ms) : 0
      socket.pause()
      void tell(skip!.pass(lines)).then(() => {
        if (pause_ms === 0) socket.resume()
        else setTimeout(() => socket.resume(), pause_ms).unref()
      })
    })
    socket.on('error', (error) => log.debug('The log of the edge cannot be read at the moment', { error }))
    socket.on('close', () => {
      settle()
      clearInterval(settling)
      signal.removeEventListener('abort', end)
      if (attached.get(pid)?.socket === socket) attached.delete(pid)
      if (!signal.aborted && pid !== 0) wake?.()
    })
    const end = () => socket.destroy()
    signal.addEventListener('abort', end, { once: true })
    socket.write(`show info; show events ${LOG_RING} -w\n`)
  }

  const isIdle = async (pid: number): Promise<boolean> =>
    parseStatistics(await cli.run(['show stat -1 1 -1'], pid)).every((row) => Number(row.scur) === 0)

  async function look(
    turn: number,
    skipOf: (source: string) => Skip,
    emit: Emit,
    signal: AbortSignal,
  ): Promise<void> {
    const workers = await cli.workers()
    if (signal.aborted) return
    if (workers.some((worker) => !worker.old && !attached.has(worker.pid))) attach(skipOf, emit, signal)
    for (const { pid } of workers.filter((worker) => worker.old)) {
      const known = attached.get(pid)
      if (known) {
        known.idle_looks = (await isIdle(pid)) ? known.idle_looks + 1 : 0
        if (known.idle_looks >= IDLE_LOOKS) known.socket.destroy()
      } else if (turn % ASK_EVERY_LOOKS === 0) {
        const head = readHead(await cli.run(['show info', `show events ${LOG_RING}`], pid))
        if (!head) continue
        const skip = skipOf(head.source)
        await emit(head.source, [...skip.pass(head.rest.split('\n')), ...skip.end()])
      }
    }
  }

  return {
    refresh: () => wake?.(),
    follow({ cursor, signal, onRequests }) {
      const positions = readCursor(cursor)
      const emitSome = (source: string, lines: string[]): void => {
        const requests = lines
          .map(parseRequestLine)
          .filter((request): request is EdgeRequest => request !== undefined)
        const last = requests.at(-1)
        if (!last) return
        positions.delete(source)
        positions.set(source, last.id)
        while (positions.size > MAX_POSITIONS) positions.delete(positions.keys().next().value ?? '')
        onRequests(requests, JSON.stringify([...positions]))
      }
      const emit: Emit = async (source, lines) => {
        const pace = createPace(source)
        for (let from = 0; from < lines.length && !signal.aborted; from += TOLD_AT_ONCE) {
          emitSome(source, lines.slice(from, from + TOLD_AT_ONCE))
          const rest = pace.rest()
          if (rest) await rest
        }
      }
      const skipOf = (source: string) => createSkip(positions.get(source))
      void (async () => {
        for (let turn = 0; !signal.aborted; turn++) {
          await look(turn, skipOf, emit, signal).catch((error: unknown) =>
            log.debug('The workers of the edge cannot be listed at the moment', { error }),
          )
          const waiting = new AbortController()
          wake = () => waiting.abort()
          await delay(LOOK_MS, undefined, {
            signal: AbortSignal.any([signal, waiting.signal]),
          }).catch(() => undefined)
          await delay(SHORTEST_MS, undefined, { signal }).catch(() => undefined)
        }
      })()
    },
  }
}

/** Who a worker is stands before what it logged. */
function readHead(text: string): { pid: number; source: string; rest: string } | undefined {
  const end = text.indexOf('\n\n')
  if (end < 0) return undefined
  const facts = new Map(
    text
      .slice(0, end)
      .split('\n')
      .map((line) => line.split(': ') as [string, string]),
  )
  const pid = Number(facts.get('Pid'))
  return pid > 0
    ? { pid, source: `${pid}.${facts.get('Start_time_sec') ?? ''}`, rest: text.slice(end + 2) }
    : undefined
}

/** Workers whose place is remembered; the edge keeps twenty old ones at most. */
const MAX_POSITIONS = 32

function readCursor(cursor: string | undefined): Map<string, string> {
  try {
    return new Map(JSON.parse(cursor ?? '[]') as [string, string][])
  } catch {
    return new Map()
  }
}
