import { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { createDial, type EngineOpener, parseHost, type Upload } from './dial.ts'
import { EngineError } from './engine.ts'
import { createEntries, type KeepEntry, OTHERS_BOUNDS, OWN_BOUNDS } from './entries.ts'
import {
  aborted,
  isConnectionLoss,
  statusError,
  toEngineError,
  tooLarge,
  unavailable,
  unreadable,
} from './failures.ts'

/** Every call that names no other deadline ends after this time. */
export const DEFAULT_DEADLINE_MS = 10_000

export interface CallOptions {
  method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE'
  /** Path without a query; its parts must be encoded already. */
  path: string
  query?: Record<string, string | number | boolean | undefined>
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
  /**
   * Time until the whole answer (or, for a stream, its beginning) must be here; 0 for none. One that is read entry by
   * entry may take it for each piece.
   */
  deadline_ms?: number
  /** Statuses above 299 that the caller wants to see as answers. */
  accept?: number[]
  /** What is kept of each entry of the lists in the answer, for one that may be too long to be read as a whole. */
  keep?: KeepEntry
}
export interface StreamOptions extends CallOptions {
  /** Bytes to send as the body, e.g. a build context. */
  upload?: Upload
  /** Time until the answer must have been read, where it is a short one; without it, it may go on for ever. */
  whole_ms?: number
}

/** The engine's HTTP API with deadlines, cancellation and errors of ours around each call. */
export interface Connection {
  /** One request and its JSON answer; undefined for an empty one or for an accepted error status. */
  call<T>(options: CallOptions): Promise<T>
  /** One request whose answer is read as it comes. Destroying the answer ends the request. */
  stream(options: StreamOptions): Promise<IncomingMessage>
  /** A request that turns its connection into a two-way byte stream. */
  hijack(
    path: string,
    headers: Record<string, string | string[]>,
    signal: AbortSignal,
    body?: object,
  ): Promise<Socket>
  /** Whether the engine is reached over a socket of this machine. */
  readonly local: boolean
  close(): void
}

/** Opens no connection yet: each call does. */
export function createConnection(docker_host: string | EngineOpener): Connection {
  const address = parseHost(docker_host)
  const dial = createDial(address)
  const bounds = 'open' in address ? OTHERS_BOUNDS : OWN_BOUNDS

  async function send(
    { path, query, method = 'GET', body, headers, upload }: StreamOptions,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    assertPath(path)
    const given = Object.fromEntries(
      Object.entries(query ?? {}).filter(([, value]) => value !== undefined),
    ) as Record<string, string | number | boolean>
    const answer = await dial.request({
      method,
      path,
      query: given,
      signal,
      ...(headers ? { headers } : {}),
      ...(body === undefined ? {} : { body }),
      ...(upload ? { upload } : {}),
    })
    answer.on('error', () => {})
    return answer
  }

  async function attempt<T>(options: CallOptions): Promise<T> {
    return await within(options, async (signal, goesOn) => {
      const answer = await send(options, signal)
      const entries = options.keep && createEntries(options.keep, bounds)
      const onPiece = bounds.takes_time ? goesOn : () => {}
      const text = await (entries
        ? readEntries(answer, entries, onPiece)
        : readAll(answer, bounds.piece_bytes))
      const value = parseAnswer<T>(answer.statusCode ?? 0, text, options.accept)
      return entries ? (entries.fill(value) as T) : value
    })
  }

  return {
    local: 'socketPath' in address,
    async call<T>(options: CallOptions): Promise<T> {
      try {
        return await attempt<T>(options)
      } catch (error) {
        // A kept connection may have been closed while it was idle, e.g. by a restart of the engine; reading
        // again is harmless.
        const idempotent = (options.method ?? 'GET') === 'GET'
        if (!idempotent || options.signal?.aborted || !isConnectionLoss((error as EngineError).cause))
          throw error
        return attempt<T>(options)
      }
    },
    stream: (options) => openStream(options, send),
    hijack(path, headers, signal, body) {
      return within({ path, signal, deadline_ms: DEFAULT_DEADLINE_MS }, async (inner) => {
        const answer = await dial.upgrade({
          method: 'POST',
          path,
          headers,
          signal: inner,
          ...(body ? { body } : {}),
        })
        if (!(answer instanceof IncomingMessage)) return answer
        throw statusError(answer.statusCode ?? 0, await readAll(answer))
      })
    },
    close: dial.close,
  }
}

type Send = (options: StreamOptions, signal: AbortSignal) => Promise<IncomingMessage>

/**
 * Begins an answer that is read as it comes: the deadline is for its beginning, the caller's signal for all
 * of it.
 */
async function openStream(options: StreamOptions, send: Send): Promise<IncomingMessage> {
  if (options.signal?.aborted) throw aborted()
  const life = new AbortController()
  const follow = () => life.abort(options.signal?.reason)
  options.signal?.addEventListener('abort', follow, { once: true })
  const answer = await within(options, async (signal) => {
    const cut = () => life.abort(signal.reason)
    signal.addEventListener('abort', cut, { once: true })
    const begun = await send(options, life.signal)
    signal.removeEventListener('abort', cut)
    if ((begun.statusCode ?? 0) >= 400) throw parseAnswer(begun.statusCode ?? 0, await readAll(begun))
    return begun
  }).catch((error: unknown) => {
    options.signal?.removeEventListener('abort', follow)
    options.upload?.destroy()
    throw error
  })
  life.signal.addEventListener('abort', () => answer.destroy(new Error('aborted')), { once: true })
  const timer =
    options.whole_ms === undefined
      ? undefined
      : setTimeout(
          () => answer.destroy(unavailable(new Error(`not read within ${options.whole_ms} ms`))),
          options.whole_ms,
        )
  answer.once('close', () => {
    clearTimeout(timer)
    options.signal?.removeEventListener('abort', follow)
    // What the engine did not take it will not take any more, and whoever sends it would wait with its file open.
    options.upload?.destroy()
  })
  return answer
}

/** A name that is empty or `..` would turn a path into that of another call. */
function assertPath(path: string): void {
  if (
    path
      .split('/')
      .slice(1)
      .some((part) => part === '' || part === '.' || part === '..')
  ) {
    throw new EngineError('not_found', 'Nothing with that name exists.')
  }
}

/** Runs a piece of work that must end before the deadline and ends early when the caller's signal aborts. */
async function within<T>(
  options: CallOptions,
  work: (signal: AbortSignal, goesOn: () => void) => Promise<T>,
): Promise<T> {
  if (options.signal?.aborted) throw aborted()
  const controller = new AbortController()
  const deadline_ms = options.deadline_ms ?? DEFAULT_DEADLINE_MS
  const timer = deadline_ms > 0 ? setTimeout(() => controller.abort(), deadline_ms) : undefined
  const cancel = () => controller.abort()
  options.signal?.addEventListener('abort', cancel, { once: true })
  // The work is raced, because not every stage of a request in dockerode settles when its signal aborts.
  const ended = new Promise<never>((_, reject) => {
    controller.signal.addEventListener(
      'abort',
      () =>
        reject(
          options.signal?.aborted ? aborted() : unavailable(new Error(`no answer within ${deadline_ms} ms`)),
        ),
      { once: true },
    )
  })
  try {
    const working = work(controller.signal, () => timer?.refresh())
    working.catch(() => {})
    return await Promise.race([working, ended])
  } catch (error) {
    throw options.signal?.aborted ? aborted() : toEngineError(error)
  } finally {
    clearTimeout(timer)
    options.signal?.removeEventListener('abort', cancel)
  }
}

async function readEntries(
  answer: IncomingMessage,
  { take, rest }: ReturnType<typeof createEntries>,
  goesOn: () => void,
): Promise<string> {
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    take(chunk)
    goesOn()
  }
  requireWhole(answer)
  return rest()
}

function requireWhole(answer: IncomingMessage): void {
  if (!answer.complete) throw Object.assign(new Error('the answer broke off'), { code: 'ECONNRESET' })
}

/** What tells of a failure is short, and so is what is said of one. */
async function readAll(answer: IncomingMessage, most_bytes = OTHERS_BOUNDS.piece_bytes): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > most_bytes) throw tooLarge()
    chunks.push(chunk)
  }
  requireWhole(answer)
  return Buffer.concat(chunks).toString('utf8')
}

function parseAnswer<T>(status: number, text: string, accept: number[] = []): T {
  let value: unknown
  try {
    value = text.trim() === '' ? undefined : JSON.parse(text)
  } catch (error) {
    if (status < 400) throw unreadable(error)
  }
  if (status < 400 || accept.includes(status)) return (status < 400 ? value : undefined) as T
  throw statusError(status, (value as { message?: string } | undefined)?.message ?? text)
}
