import { Agent } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { inspect } from 'node:util'
import Docker from 'dockerode'
import { EngineError } from './engine.ts'
import { aborted, isConnectionLoss, statusError, toEngineError, unavailable } from './failures.ts'

/** Every call that names no other deadline ends after this time. */
export const DEFAULT_DEADLINE_MS = 10_000
/** An answer larger than this is not one of the engine's. */
const ANSWER_LIMIT_BYTES = 64 * 1024 * 1024
/** All statuses are answers to us; dockerode would otherwise turn them into errors that mix its words with the engine's. */
const ALL_STATUSES = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [100 + index, true]))

export interface CallOptions {
  method?: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Path without a query; its parts must be encoded already. */
  path: string
  query?: Record<string, string | number | boolean | undefined>
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
  /** Time until the whole answer (or, for a stream, its beginning) must be here; 0 for none. */
  deadline_ms?: number
  /** Statuses above 299 that the caller wants to see as answers. */
  accept?: number[]
}
export interface StreamOptions extends CallOptions {
  /** Bytes to send as the body, e.g. a build context. */
  upload?: { pipe: unknown; destroy(error?: Error): unknown }
}

/** The engine's HTTP API with deadlines, cancellation and errors of ours around each call. */
export interface Connection {
  /** One request and its JSON answer; undefined for an empty one or for an accepted error status. */
  call<T>(options: CallOptions): Promise<T>
  /** One request whose answer is read as it comes. Destroying the answer ends the request. */
  stream(options: StreamOptions): Promise<IncomingMessage>
  /** A request that turns its connection into a two-way byte stream. */
  hijack(path: string, headers: Record<string, string>, signal: AbortSignal): Promise<Socket>
  /** Whether the engine is reached over a socket of this machine. */
  readonly local: boolean
  close(): void
}

interface DialOptions extends Record<string, unknown> { path: string; method: string }
interface Modem { dial(options: DialOptions, callback: (error: unknown, answer: unknown) => void): void }

/** Where dockerode connects for a DOCKER_HOST; throws for a form that it does not know. */
export function parseHost(docker_host: string): { socketPath: string } | { host: string; port: number; protocol: 'http' } {
  if (docker_host.startsWith('unix://')) return { socketPath: docker_host.slice('unix://'.length) }
  const url = URL.parse(docker_host)
  if (url?.protocol === 'tcp:' && url.hostname) return { host: url.hostname, port: Number(url.port || 2375), protocol: 'http' }
  throw new EngineError('unavailable', 'DOCKER_HOST must look like unix:///var/run/docker.sock or tcp://host:2375.')
}

/**
 * Before each request docker-modem renders all its options to text for its debug output, also while that is off: without this
 * it walks every socket of the agent and every listener of the signal, which takes ten times as long as the request itself.
 */
function cheapToInspect<T extends object>(value: T, name: string): T {
  return Object.defineProperty(value, inspect.custom, { configurable: true, value: () => name })
}

/** Opens no connection yet: each call does. */
export function createConnection(docker_host = 'unix:///var/run/docker.sock'): Connection {
  const target = parseHost(docker_host)
  const agent = cheapToInspect(new Agent({ keepAlive: true, keepAliveMsecs: 30_000, maxFreeSockets: 8 }), 'agent')
  const modem = new Docker({ ...target, agent } as never).modem as unknown as Modem
  const dial = (options: DialOptions) => new Promise<unknown>((resolve, reject) => {
    modem.dial({ ...options, isStream: true, statusCodes: ALL_STATUSES }, (error, answer) => (error ? reject(error) : resolve(answer)))
  })

  async function send(options: StreamOptions, signal: AbortSignal): Promise<IncomingMessage> {
    assertPath(options.path)
    const query = Object.fromEntries(Object.entries(options.query ?? {}).filter(([, value]) => value !== undefined))
    const answer = await dial({
      path: `${options.path}?`, method: options.method ?? 'GET', abortSignal: cheapToInspect(signal, 'signal'), options: { _query: query, _body: options.body ?? {} },
      ...(options.headers ? { headers: options.headers } : {}), ...(options.upload ? { file: options.upload } : {}),
    }) as IncomingMessage
    answer.on('error', () => {})
    return answer
  }

  async function attempt<T>(options: CallOptions): Promise<T> {
    return await within(options, async (signal) => {
      const answer = await send(options, signal)
      const text = await readAll(answer)
      return parseAnswer<T>(answer.statusCode ?? 0, text, options.accept)
    })
  }

  return {
    local: 'socketPath' in target,
    async call<T>(options: CallOptions): Promise<T> {
      try {
        return await attempt<T>(options)
      } catch (error) {
        // A kept connection may have been closed while it was idle, e.g. by a restart of the engine; reading again is harmless.
        const idempotent = (options.method ?? 'GET') === 'GET'
        if (!idempotent || options.signal?.aborted || !isConnectionLoss((error as EngineError).cause)) throw error
        return attempt<T>(options)
      }
    },
    stream: (options) => openStream(options, send),
    hijack(path, headers, signal) {
      return within({ path, signal, deadline_ms: DEFAULT_DEADLINE_MS }, async (inner) => {
        const answer = await dial({ path, method: 'POST', hijack: true, headers, abortSignal: cheapToInspect(inner, 'signal') })
        if ('statusCode' in (answer as object)) {
          const refused = answer as IncomingMessage
          throw statusError(refused.statusCode ?? 0, await readAll(refused))
        }
        return answer as Socket
      })
    },
    close: () => agent.destroy(),
  }
}

type Send = (options: StreamOptions, signal: AbortSignal) => Promise<IncomingMessage>

/** Begins an answer that is read as it comes: the deadline is for its beginning, the caller's signal for all of it. */
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
  answer.once('close', () => options.signal?.removeEventListener('abort', follow))
  return answer
}

/** A name that is empty or `..` would turn a path into that of another call. */
function assertPath(path: string): void {
  if (path.split('/').slice(1).some((part) => part === '' || part === '.' || part === '..')) {
    throw new EngineError('not_found', 'There is nothing of that name.')
  }
}

/** Runs a piece of work that must end before the deadline and ends early when the caller's signal aborts. */
async function within<T>(options: CallOptions, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  if (options.signal?.aborted) throw aborted()
  const controller = new AbortController()
  const deadline_ms = options.deadline_ms ?? DEFAULT_DEADLINE_MS
  const timer = deadline_ms > 0 ? setTimeout(() => controller.abort(), deadline_ms) : undefined
  const cancel = () => controller.abort()
  options.signal?.addEventListener('abort', cancel, { once: true })
  // The work is raced, because not every stage of a request in dockerode settles when its signal aborts.
  const ended = new Promise<never>((_, reject) => {
    controller.signal.addEventListener('abort', () => reject(options.signal?.aborted ? aborted() : unavailable(new Error(`no answer within ${deadline_ms} ms`))), { once: true })
  })
  try {
    const working = work(controller.signal)
    working.catch(() => {})
    return await Promise.race([working, ended])
  } catch (error) {
    throw options.signal?.aborted ? aborted() : toEngineError(error)
  } finally {
    clearTimeout(timer)
    options.signal?.removeEventListener('abort', cancel)
  }
}

async function readAll(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > ANSWER_LIMIT_BYTES) throw new EngineError('failed', 'The container engine sent an answer that is too large.')
    chunks.push(chunk)
  }
  if (!answer.complete) throw Object.assign(new Error('the answer broke off'), { code: 'ECONNRESET' })
  return Buffer.concat(chunks).toString('utf8')
}

function parseAnswer<T>(status: number, text: string, accept: number[] = []): T {
  let value: unknown
  try {
    value = text.trim() === '' ? undefined : JSON.parse(text)
  } catch (error) {
    if (status < 400) throw new EngineError('failed', 'The container engine sent an answer that cannot be read.', undefined, { cause: error })
  }
  if (status < 400 || accept.includes(status)) return (status < 400 ? value : undefined) as T
  throw statusError(status, (value as { message?: string } | undefined)?.message ?? text)
}
