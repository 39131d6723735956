import { Agent, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { inspect } from 'node:util'
import { EngineError } from './engine.ts'

/** Opens a stream to the socket of an engine that only the caller knows how to reach. */
export interface EngineOpener {
  open(): Promise<Duplex>
}
/** Where the engine listens: a socket of this machine, an address, or behind whatever the caller opens. */
export type EngineAddress =
  | { socketPath: string }
  | { host: string; port: number; protocol: 'http' }
  | EngineOpener

/** One request as it goes over the wire. */
export interface DialOptions {
  method: string
  /** Path without a query; its parts must be encoded already. */
  path: string
  query?: Record<string, string | number | boolean>
  headers?: Record<string, string | string[]>
  signal: AbortSignal
  /** Sent as JSON. */
  body?: unknown
  /** Bytes that are sent as they come; when they end with an error, so does the request. */
  upload?: Upload
}
export interface Upload {
  pipe: unknown
  on: unknown
  destroy(error?: Error): unknown
}

/** Bare requests to the engine: every status is an answer, an error is a connection that failed. */
export interface Dial {
  request(options: DialOptions): Promise<IncomingMessage>
  /** Asks for a two-way byte stream instead of an answer; the answer when the engine will not. */
  upgrade(options: DialOptions): Promise<Socket | IncomingMessage>
  close(): void
}

/** Idle connections that are kept for the next calls; a kept one saves a new engine thread per call. */
const KEPT_CONNECTIONS = 8
const KEEP_ALIVE_PROBE_MS = 30_000
/**
 * All statuses are answers to us; dockerode would otherwise turn them into errors that mix its words with the
 * engine's.
 */
const ALL_STATUSES = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [100 + index, true]))

interface Modem {
  dial(options: Record<string, unknown>, callback: (error: unknown, answer: unknown) => void): void
}

/** Where dockerode connects for a DOCKER_HOST; throws for a form that it does not know. */
export function parseHost(docker_host: string | EngineOpener): EngineAddress {
  if (typeof docker_host !== 'string') return docker_host
  if (docker_host.startsWith('unix://')) return { socketPath: docker_host.slice('unix://'.length) }
  const url = URL.parse(docker_host)
  if (url?.protocol === 'tcp:' && url.hostname)
    return { host: url.hostname, port: Number(url.port || 2375), protocol: 'http' }
  throw new EngineError(
    'unavailable',
    'DOCKER_HOST must look like unix:///var/run/docker.sock or tcp://host:2375.',
  )
}

/**
 * Before each request docker-modem renders all its options to text for its debug output, also while that is
 * off: without this it walks every socket of the agent and every listener of the signal, which takes ten
 * times as long as the request itself.
 */
function cheapToInspect<T extends object>(value: T, name: string): T {
  return Object.defineProperty(value, inspect.custom, { configurable: true, value: () => name })
}

/** What Node's HTTP client calls of a socket and no other stream has. */
const NO_SOCKET = ['setKeepAlive', 'setNoDelay', 'setTimeout', 'ref', 'unref'] as const

function asSocket(stream: Duplex): Duplex {
  const socket = stream as Duplex & Record<string, unknown>
  for (const name of NO_SOCKET) socket[name] ??= () => stream
  socket.destroySoon ??= () => stream.destroy()
  return stream
}

/** Keeps connections that the caller opens. */
class OpeningAgent extends Agent {
  readonly #opener: EngineOpener
  constructor(opener: EngineOpener, options: ConstructorParameters<typeof Agent>[0]) {
    super(options)
    this.#opener = opener
  }
  override createConnection(_options: unknown, callback?: (error: Error | null, stream: Duplex) => void) {
    this.#opener.open().then(
      (stream) => callback?.(null, asSocket(stream)),
      (error: Error) => callback?.(error, undefined as never),
    )
    return undefined
  }
}

/**
 * Opens no connection yet: each request does, or takes a kept one. docker-modem, the part of dockerode that speaks
 * to engines, is loaded with the first, since a start does not need it. dockerode itself brings gRPC along.
 */
export function createDial(address: EngineAddress): Dial {
  const keeping = {
    keepAlive: true,
    keepAliveMsecs: KEEP_ALIVE_PROBE_MS,
    maxFreeSockets: KEPT_CONNECTIONS,
  }
  const is_opened = 'open' in address
  const agent = cheapToInspect(is_opened ? new OpeningAgent(address, keeping) : new Agent(keeping), 'agent')
  const target = is_opened ? { host: 'engine', port: 80, protocol: 'http' } : address
  let loading: Promise<Modem> | undefined
  const load = () =>
    (loading ??= import('docker-modem').then(
      ({ default: DockerModem }) => new DockerModem({ ...target, agent } as never) as unknown as Modem,
    ))

  async function dial(
    { path, query, method, body, headers, signal, upload }: DialOptions,
    more: Record<string, unknown>,
  ): Promise<unknown> {
    const modem = await load()
    const options = { _query: query ?? {}, _body: body ?? {} }
    const request = {
      path: `${path}?`,
      method,
      options,
      headers: { ...headers },
      abortSignal: cheapToInspect(signal, 'signal'),
      ...(upload ? { file: upload } : {}),
      ...more,
    }
    return new Promise((resolve, reject) => {
      modem.dial(request, (error, answer) => (error ? reject(error) : resolve(answer)))
    })
  }

  return {
    request: (options) =>
      dial(options, { isStream: true, statusCodes: ALL_STATUSES }) as Promise<IncomingMessage>,
    upgrade: (options) =>
      dial(options, { isStream: true, statusCodes: ALL_STATUSES, hijack: true }) as Promise<
        Socket | IncomingMessage
      >,
    close: () => agent.destroy(),
  }
}
