import { Agent, type IncomingMessage, request, type RequestOptions } from 'node:http'
import type { Socket } from 'node:net'
import { EngineError } from './engine.ts'

/** Where the engine listens: a socket of this machine, or an address. */
export type EngineAddress = { socketPath: string } | { host: string; port: number }

/** One request as it goes over the wire. */
export interface DialOptions {
  method: string
  /** Path and query; its parts must be encoded already. */
  target: string
  headers: Record<string, string | string[]>
  signal: AbortSignal
  /** A JSON text, or a stream that is sent as it comes. */
  body?: string | Upload
}

/** Bytes that are sent as they come; when they end with an error, so does the request. */
export interface Upload {
  pipe(sink: NodeJS.WritableStream): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  destroy(error?: Error): unknown
}

/** Bare HTTP to the engine: every status is an answer, an error is a connection that failed. */
export interface Dial {
  request(options: DialOptions): Promise<IncomingMessage>
  /** Asks for a two-way byte stream instead of an answer; the answer when the engine will not. */
  upgrade(options: DialOptions): Promise<Socket | IncomingMessage>
  close(): void
}

/** Idle connections that are kept for the next calls; a kept one saves a new engine thread per call. */
const KEPT_CONNECTIONS = 8
const KEEP_ALIVE_PROBE_MS = 30_000

/** The address in a DOCKER_HOST; throws for a form that is not known. */
export function parseHost(docker_host: string): EngineAddress {
  if (docker_host.startsWith('unix://')) return { socketPath: docker_host.slice('unix://'.length) }
  const url = URL.parse(docker_host)
  if (url?.protocol === 'tcp:' && url.hostname) return { host: url.hostname, port: Number(url.port || 2375) }
  throw new EngineError('unavailable', 'DOCKER_HOST must look like unix:///var/run/docker.sock or tcp://host:2375.')
}

/** Opens no connection yet: each request does, or takes a kept one. */
export function createDial(address: EngineAddress): Dial {
  const agent = new Agent({ keepAlive: true, keepAliveMsecs: KEEP_ALIVE_PROBE_MS, maxFreeSockets: KEPT_CONNECTIONS })

  function begin({ method, target, headers, signal, body }: DialOptions) {
    const options: RequestOptions = { ...address, agent, method, path: target, headers, signal }
    const outgoing = request(options)
    if (typeof body === 'string') outgoing.end(body)
    else if (body) {
      // Also when the engine refuses before it has read everything.
      body.on('error', (error) => outgoing.destroy(error))
      body.pipe(outgoing)
    } else outgoing.end()
    return outgoing
  }

  return {
    request: (options) => new Promise((resolve, reject) => {
      begin(options).once('response', resolve).on('error', reject)
    }),
    upgrade: (options) => new Promise((resolve, reject) => {
      begin(options).once('response', resolve).on('error', reject).once('upgrade', (_answer, socket: Socket, first: Buffer) => {
        if (first.length > 0) socket.unshift(first)
        resolve(socket)
      })
    }),
    close: () => agent.destroy(),
  }
}
