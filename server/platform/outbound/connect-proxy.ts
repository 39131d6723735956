import { randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createDial } from './dial.ts'
import { OutboundError, type Dial, type OutboundPolicy } from './outbound.ts'

/**
 * A local HTTP proxy for programs that make their own connections, such as git: it dials by the policy and
 * counts bytes.
 */
export interface ConnectProxy {
  /** A credential for one run of one program. */
  open(limits?: { max_bytes?: number }): ProxySession
  /** Address it listens on, always of the loopback interface. */
  readonly port: number
  close(): Promise<void>
}
export interface ProxySession {
  /** `http://<user>:<password>@127.0.0.1:<port>`; worthless once the session is closed. */
  readonly url: string
  /** Bytes that came from outside so far. */
  readonly received_bytes: number
  /** Why the latest connection was not made or not kept, which the program itself cannot tell. */
  readonly failure: OutboundError | undefined
  /** Ends every tunnel of the session and voids its credential. */
  close(): void
}

interface SessionState {
  password: Buffer
  max_bytes: number
  received_bytes: number
  failure?: OutboundError
  sockets: Set<Duplex>
}

const STATUS: Partial<Record<OutboundError['code'], [number, string]>> = {
  forbidden: [403, 'Forbidden'],
  invalid: [403, 'Forbidden'],
  timeout: [504, 'Gateway Timeout'],
}

/** Reads `Basic user:password` of the proxy's own header. */
function readCredential(request: IncomingMessage): [user: string, password: string] | undefined {
  const [scheme, encoded] = (request.headers['proxy-authorization'] ?? '').split(' ')
  if (scheme?.toLowerCase() !== 'basic' || !encoded) return undefined
  const [user = '', password = ''] = Buffer.from(encoded, 'base64').toString().split(':')
  return [user, password]
}

function toOutboundError(error: unknown): OutboundError {
  return error instanceof OutboundError
    ? error
    : new OutboundError('failed', 'The connection could not be made.', { cause: error })
}

/** Splits `host:port` of a CONNECT line; IPv6 has brackets. */
function readAuthority(text: string): { host: string; port: number } {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^:/@\s]+):(\d{1,5})$/.exec(text)
  if (!match) throw new OutboundError('invalid', 'The proxy was asked for an address that it cannot read.')
  return { host: match[1]!, port: Number(match[2]) }
}

/** Counts what comes from outside; past the limit the session is over. */
function meter(session: SessionState, socket: Socket): void {
  session.sockets.add(socket)
  socket.once('close', () => session.sockets.delete(socket))
  socket.on('data', (chunk: Buffer) => {
    session.received_bytes += chunk.length
    if (session.received_bytes <= session.max_bytes) return
    session.failure = new OutboundError('too_large', `More than ${session.max_bytes} bytes were sent.`)
    for (const open of session.sockets) open.destroy()
  })
}

const broken = () => new OutboundError('failed', 'The connection broke before there was an answer.')

/** Hands a plain http request on over a checked connection. */
function forward(
  session: SessionState,
  dial: Dial,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  let left = false
  const refuse = (error: unknown): void => {
    // When the program itself hangs up, what breaks after that is no failure of the network.
    if (left) return
    session.failure ??= toOutboundError(error)
    const [status, text] = STATUS[toOutboundError(error).code] ?? [502, 'Bad Gateway']
    if (response.headersSent) response.destroy()
    else response.writeHead(status, text, { connection: 'close' }).end()
  }
  const url = request.url && URL.canParse(request.url) ? new URL(request.url) : undefined
  if (url?.protocol !== 'http:' || url.username)
    return refuse(new OutboundError('invalid', 'The proxy was asked for an address that it cannot read.'))
  const leaving = new AbortController()
  response.once('close', () => {
    left = true
    leaving.abort()
  })
  dial(url.hostname, Number(url.port || 80), { signal: leaving.signal })
    .then((socket) => {
      if (left) return void socket.destroy()
      meter(session, socket)
      const headers = Object.fromEntries(
        Object.entries(request.headers).filter(
          ([name]) => !name.startsWith('proxy-') && name !== 'connection',
        ),
      )
      const upstream = httpRequest({
        method: request.method,
        path: url.pathname + url.search,
        headers: { ...headers, connection: 'close' },
        createConnection: () => socket,
      })
      upstream.on('error', refuse)
      upstream.on('response', (answer) => {
        const { connection: _, 'keep-alive': __, ...passed } = answer.headers
        answer.on('error', refuse)
        try {
          response.writeHead(answer.statusCode ?? 502, passed)
        } catch {
          // A status or headers that no answer may have.
          session.failure ??= broken()
          return void response.destroy()
        }
        answer.pipe(response)
      })
      // Such as after an answer that would speak another protocol from then on.
      upstream.once('close', () => {
        if (!response.headersSent) refuse(broken())
      })
      response.once('close', () => upstream.destroy())
      request.pipe(upstream)
    })
    .catch(refuse)
}

/** Joins the program and the checked connection until one side ends. */
function tunnel(
  session: SessionState,
  dial: Dial,
  request: IncomingMessage,
  client: Duplex,
  head: Buffer,
): void {
  client.on('error', () => client.destroy())
  session.sockets.add(client)
  const leaving = new AbortController()
  client.once('close', () => {
    session.sockets.delete(client)
    leaving.abort()
  })
  Promise.resolve()
    .then(() => readAuthority(request.url ?? ''))
    .then(({ host, port }) => dial(host, port, { signal: leaving.signal }))
    .then((socket) => {
      if (client.destroyed) return void socket.destroy()
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      if (head.length > 0) socket.write(head)
      meter(session, socket)
      socket.on('error', () => client.destroy())
      socket.once('close', () => client.destroy())
      client.once('close', () => socket.destroy())
      socket.pipe(client)
      client.pipe(socket)
    })
    .catch((error: unknown) => {
      if (leaving.signal.aborted) return
      session.failure = toOutboundError(error)
      const [status, text] = STATUS[session.failure.code] ?? [502, 'Bad Gateway']
      client.end(`HTTP/1.1 ${status} ${text}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
    })
}

/**
 * Starts the proxy on a free loopback port. Without a session's credential it answers 407 and connects
 * nowhere.
 */
export async function createConnectProxy(
  policy: OutboundPolicy,
  options: { dial?: Dial } = {},
): Promise<ConnectProxy> {
  const dial = options.dial ?? createDial(policy)
  const sessions = new Map<string, SessionState>()

  const find = (request: IncomingMessage): SessionState | undefined => {
    const [user, password] = readCredential(request) ?? []
    const session = user === undefined ? undefined : sessions.get(user)
    const given = Buffer.from(password ?? '')
    return session && given.length === session.password.length && timingSafeEqual(given, session.password)
      ? session
      : undefined
  }
  const server = createServer((request, response) => {
    const session = find(request)
    if (session) forward(session, dial, request, response)
    else
      response.writeHead(407, { 'proxy-authenticate': 'Basic realm="portreeve"', connection: 'close' }).end()
  })
  server.on('connect', (request: IncomingMessage, client: Duplex, head: Buffer) => {
    const session = find(request)
    if (session) return tunnel(session, dial, request, client, head)
    client.on('error', () => {})
    client.end(
      'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="portreeve"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n',
    )
  })
  server.on('clientError', (_error, socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  server.unref()
  const { port } = server.address() as AddressInfo

  return {
    port,
    open({ max_bytes = Number.POSITIVE_INFINITY } = {}) {
      const [user, password] = [randomBytes(12).toString('hex'), randomBytes(24).toString('hex')]
      const state: SessionState = {
        password: Buffer.from(password),
        max_bytes,
        received_bytes: 0,
        sockets: new Set(),
      }
      sessions.set(user, state)
      return {
        url: `http://${user}:${password}@127.0.0.1:${port}`,
        get received_bytes() {
          return state.received_bytes
        },
        get failure() {
          return state.failure
        },
        close() {
          sessions.delete(user)
          for (const socket of state.sockets) socket.destroy()
        },
      }
    },
    async close() {
      for (const state of sessions.values()) for (const socket of state.sockets) socket.destroy()
      sessions.clear()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
