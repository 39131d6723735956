import { type Agent, request, type IncomingHttpHeaders } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Seen } from './app.ts'

export interface Address {
  host: string
  port: number
}
export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  text: string
  seen: Seen
}
export interface AskOptions {
  method?: string
  path?: string
  headers?: Record<string, string | string[]>
  body?: Buffer
  agent?: Agent
  onChunk?: (chunk: string) => void
}

/** Sends one request for an app to the edge. */
export function ask(
  edge: Address,
  hostname: string,
  { method = 'GET', path = '/', headers = {}, body, agent, onChunk }: AskOptions = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { ...edge, method, path, headers: { ...headers, host: hostname }, agent: agent ?? false },
      (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => {
          text += chunk
          onChunk?.(chunk)
        })
        response.on('error', reject)
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            get seen() {
              return JSON.parse(text) as Seen
            },
          }),
        )
      },
    )
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

/**
 * Sends bytes as they are and returns everything that comes back until the edge closes or is quiet for a
 * moment after an answer.
 */
export function askRaw(edge: Address, bytes: string | Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(edge.port, edge.host, () => socket.write(bytes))
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      socket.setTimeout(300)
    })
    socket.on('timeout', () => socket.destroy())
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(text))
    setTimeout(() => reject(new Error('the edge neither answered nor closed')), 15_000).unref()
  })
}

/** An upgraded connection through the edge. */
export interface Upgraded {
  say(text: string): Promise<string>
  readonly closed: boolean
  close(): void
}

export async function upgrade(edge: Address, hostname: string): Promise<Upgraded> {
  const socket: Socket = connect(edge.port, edge.host)
  socket.on('error', () => undefined)
  const next = () =>
    new Promise<string>((resolve, reject) => {
      socket.once('data', (chunk) => resolve(chunk.toString()))
      socket.once('close', () => reject(new Error('the connection was closed')))
    })
  const answered = next()
  socket.write(
    `GET /socket HTTP/1.1\r\nHost: ${hostname}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
  )
  const answer = await answered
  if (!answer.startsWith('HTTP/1.1 101')) throw new Error(answer)
  return {
    say(text) {
      const echo = next()
      socket.write(text)
      return echo
    },
    get closed() {
      return socket.destroyed || socket.readableEnded
    },
    close() {
      socket.destroy()
    },
  }
}

/** Waits until a condition holds; what it waited for stands in the error. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  within_ms = 60_000,
): Promise<void> {
  const deadline = performance.now() + within_ms
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited in vain until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
