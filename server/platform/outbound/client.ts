import type { Socket } from 'node:net'
import { isIP } from 'node:net'
import type { SecureContext } from 'node:tls'
import type { Agent, buildConnector, Dispatcher } from 'undici'
import { inTurns } from '#server/kernel/in-turns'
import { createDial } from './dial.ts'
import { OutboundError, type Dial, type OutboundPolicy } from './outbound.ts'
import { bareHost } from './policy.ts'
import { createWaiting, type Waiting } from './waiting.ts'

export interface SendOptions {
  method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  headers?: Record<string, string>
  body?: string | Uint8Array
  signal?: AbortSignal
  /** Time until the last byte of the answer. Default 10,000. */
  timeout_ms?: number
  /** Bytes of the answer's body after which it is an error. Default 1 MiB. */
  max_bytes?: number
  /**
   * Redirects that are followed, each checked like the first address; credentials do not cross origins.
   * Default 0: they are returned.
   */
  max_redirects?: number
  /** Default: `https`, and `http` for hosts that the operator listed. */
  protocols?: readonly string[]
}

/** An answer whose body is read once, by one of the three ways. */
export interface Answer {
  status: number
  headers: Record<string, string>
  /** Address that answered, after redirects. */
  url: string
  /** The body as it comes; throws OutboundError `too_large` past the limit. */
  body: AsyncIterable<Uint8Array>
  bytes(): Promise<Uint8Array>
  text(): Promise<string>
  /** Throws the body away and frees the connection. */
  discard(): Promise<void>
}

/** Sends requests to addresses that users gave. Throws OutboundError only. */
export interface GuardedClient {
  send(url: string, options?: SendOptions): Promise<Answer>
  close(): Promise<void>
}

export interface GuardedClientOptions {
  /** Authorities besides the built-in ones, in PEM. */
  ca?: readonly string[]
  /** Time for a connection with the look-up of its name, and as much for its TLS. Default 5,000. */
  connect_timeout_ms?: number
  /** How long a connection is kept for a next request. Default 5,000. */
  idle_ms?: number
  dial?: Dial
}

/** Half of the time that a request has unless it says otherwise. Source: security.md 2.13. */
const CONNECT_MS = 5_000
/** A server that may say how long its connections are kept would have thousands of them, one for each of its names. */
const IDLE_MS = 5_000
const TLS_CODE =
  /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|EPROTO|HOSTNAME_MISMATCH|INVALID_CA)/
/** Headers that must not reach another origin by way of a redirect. */
const CREDENTIAL_HEADERS = /^(authorization|cookie|proxy-authorization|x-.*(token|key|secret|signature).*)$/i
const REDIRECTS = new Set([301, 302, 303, 307, 308])

/** Turns what undici, TLS or the socket throw into one sentence that names the host only. */
function explain(error: unknown, host: string, signal: AbortSignal | undefined): OutboundError {
  if (error instanceof OutboundError) return error
  if (signal?.aborted) return new OutboundError('aborted', 'The request was cancelled.')
  const { name, code = '', cause } = error as NodeJS.ErrnoException & { cause?: unknown }
  if (cause instanceof OutboundError) return cause
  if (name === 'TimeoutError' || (code.startsWith('UND_ERR_') && code.endsWith('_TIMEOUT')))
    return new OutboundError('timeout', `${host} did not answer in time.`, { cause: error })
  if (TLS_CODE.test(code))
    return new OutboundError(
      'tls',
      `${host} did not prove its identity: its TLS certificate is not valid for this server (${code}).`,
      { cause: error },
    )
  return new OutboundError('failed', `The connection to ${host} broke before the answer was complete.`, {
    cause: error,
  })
}

/** What of undici is used here, under the names that it has there. */
interface Undici {
  buildConnector(options: buildConnector.BuildOptions): buildConnector.connector
  Agent: new (options: Agent.Options) => Agent
  request(
    this: Pick<Dispatcher, 'dispatch'>,
    options: Dispatcher.RequestOptions,
  ): Promise<Dispatcher.ResponseData>
}

/**
 * The HTTP client, loaded at the first request, since many installations never send one. The parts that are used
 * take 45 ms in two pieces; the package as a whole, with `fetch`, takes 130 ms in one and 14 MB more.
 */
async function loadUndici(): Promise<Undici> {
  await inTurns(
    () => import('node:tls'),
    () => import('undici/lib/core/connect.js' as string),
    () => import('undici/lib/dispatcher/agent.js' as string),
  )
  const { default: build } = await import('undici/lib/core/connect.js' as string)
  const { default: agent } = await import('undici/lib/dispatcher/agent.js' as string)
  const { default: send } = await import('undici/lib/api/api-request.js' as string)
  return { buildConnector: build, Agent: agent, request: send }
}

/** Reading 150 authorities takes 30 ms: once for a client, and not for each of its connections. */
async function trusting(ca: readonly string[]): Promise<SecureContext> {
  const { createSecureContext } = await import('node:tls')
  return createSecureContext({ ca: [...ca] })
}

/** A connector that dials checked addresses only, and speaks TLS over the connection it was given. */
function createConnector(
  undici: Undici,
  dial: Dial,
  options: GuardedClientOptions,
  secureContext: SecureContext | undefined,
  waiting: Waiting,
): buildConnector.connector {
  const timeout_ms = options.connect_timeout_ms ?? CONNECT_MS
  const startTls = undici.buildConnector({
    timeout: timeout_ms,
    allowH2: false,
    ...(secureContext ? { secureContext } : {}),
  })
  return (target, callback) => {
    const host = bareHost(target.hostname)
    const port = Number(target.port || (target.protocol === 'https:' ? 443 : 80))
    const signal = waiting.signalOf(`${target.protocol}//${target.host}`)
    dial(host, port, { timeout_ms, ...(signal ? { signal } : {}) }).then(
      (socket: Socket) => {
        if (target.protocol !== 'https:') return callback(null, socket.setNoDelay(true))
        const servername = isIP(host) ? undefined : host
        startTls(
          { ...target, hostname: host, ...(servername ? { servername } : {}), httpSocket: socket },
          callback,
        )
      },
      (error: Error) => callback(error, null),
    )
  }
}

/**
 * Sends requests, and takes what comes out of what it came in where that is much more: the bytes of an answer are a
 * part of those that were read with them, and keep all of these in memory. A server that sends each byte in a chunk
 * of its own, with 64 KiB beside it that mean nothing, filled the memory within any limit on the answer.
 */
const takingOut = (agent: Agent): Pick<Dispatcher, 'dispatch'> => ({
  dispatch(options, handler) {
    const take = handler.onData?.bind(handler)
    if (take)
      handler.onData = (chunk) =>
        take(2 * chunk.byteLength < chunk.buffer.byteLength ? Buffer.from(chunk) : chunk)
    return agent.dispatch(options, handler)
  },
})

/** Reads a body up to its limit; more than that ends the connection. */
async function* limited(
  body: Dispatcher.ResponseData['body'],
  max_bytes: number,
  host: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  let size = 0
  try {
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      size += chunk.byteLength
      if (size > max_bytes) throw new OutboundError('too_large', `${host} sent more than ${max_bytes} bytes.`)
      yield chunk
    }
  } catch (error) {
    throw explain(error, host, signal)
  } finally {
    body.destroy()
  }
}

function toAnswer(
  response: Dispatcher.ResponseData,
  url: URL,
  max_bytes: number,
  signal: AbortSignal | undefined,
): Answer {
  const headers = Object.fromEntries(
    Object.entries(response.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  )
  response.body.on('error', () => {})
  const body = limited(response.body, max_bytes, url.host, signal)
  const bytes = async () => {
    const chunks: Uint8Array[] = []
    for await (const chunk of body) chunks.push(chunk)
    return new Uint8Array(Buffer.concat(chunks))
  }
  return {
    status: response.statusCode,
    headers,
    url: url.href,
    body,
    bytes,
    text: async () => new TextDecoder().decode(await bytes()),
    async discard() {
      response.body.destroy()
    },
  }
}

/**
 * What a redirect asks for next: its method changes as browsers do it, and credentials stay with their
 * origin.
 */
function follow(
  from: URL,
  location: string,
  status: number,
  options: SendOptions,
): { url: string; options: SendOptions } {
  if (!URL.canParse(location, from.href))
    throw new OutboundError('redirect', `${from.host} redirected to an address that is not valid.`)
  const to = new URL(location, from)
  const { body, ...rest } = options
  const as_get = status === 303 || (status < 303 && options.method === 'POST')
  const headers = Object.fromEntries(
    Object.entries(options.headers ?? {}).filter(
      ([name]) => to.origin === from.origin || !CREDENTIAL_HEADERS.test(name),
    ),
  )
  return {
    url: to.href,
    options: as_get
      ? { ...rest, method: 'GET', headers }
      : { ...rest, ...(body === undefined ? {} : { body }), headers },
  }
}

/** A client that connects where the policy allows, and nowhere else, whatever DNS and redirects say. */
export function createGuardedClient(
  policy: OutboundPolicy,
  options: GuardedClientOptions = {},
): GuardedClient {
  const waiting = createWaiting()
  const idle_ms = options.idle_ms ?? IDLE_MS
  let opening: Promise<{ undici: Undici; dispatcher: Agent }> | undefined
  const open = () =>
    (opening ??= loadUndici().then(async (undici) => {
      const secure = options.ca ? await trusting(options.ca) : undefined
      const connect = createConnector(undici, options.dial ?? createDial(policy), options, secure, waiting)
      return {
        undici,
        dispatcher: new undici.Agent({
          connect,
          keepAliveTimeout: idle_ms,
          keepAliveMaxTimeout: idle_ms,
          maxRedirections: 0,
        } as Agent.Options),
      }
    }))

  async function attempt(
    address: string,
    send: SendOptions,
    limit: AbortSignal,
    redirects: number,
  ): Promise<Answer> {
    const url = policy.checkUrl(address, send.protocols ? { protocols: send.protocols } : {})
    const { undici, dispatcher } = await open()
    const response = await waiting
      .until(url.origin, limit, () =>
        undici.request.call(takingOut(dispatcher), {
          origin: url.origin,
          path: `${url.pathname}${url.search}`,
          method: send.method ?? 'GET',
          headers: { 'user-agent': 'Portreeve', ...send.headers },
          signal: limit,
          body: send.body ?? null,
        }),
      )
      .catch((error: unknown) => {
        throw explain(error, url.host, send.signal)
      })
    const location = response.headers.location
    if (!REDIRECTS.has(response.statusCode) || typeof location !== 'string' || !send.max_redirects)
      return toAnswer(response, url, send.max_bytes ?? 1024 ** 2, send.signal)
    response.body.on('error', () => {}).destroy()
    if (redirects >= send.max_redirects)
      throw new OutboundError('redirect', `${url.host} redirected more than ${send.max_redirects} times.`)
    const next = follow(url, location, response.statusCode, send)
    return attempt(next.url, next.options, limit, redirects + 1)
  }

  return {
    send(address, send = {}) {
      const time = AbortSignal.timeout(send.timeout_ms ?? 10_000)
      return attempt(address, send, send.signal ? AbortSignal.any([send.signal, time]) : time, 0)
    },
    close: async () => (await opening)?.dispatcher.destroy(),
  }
}
