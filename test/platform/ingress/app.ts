import { createHash } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { RouteServer } from '#server/platform/ingress/ingress'

/** What an app saw of a request; it answers with it. */
export interface Seen {
  app: string
  method: string
  url: string
  headers: IncomingHttpHeaders
  raw: string[]
  body_bytes: number
}

/**
 * A small real app to route to. `/hold` answers after `release()`, `/stream` sends one line at once and the
 * rest then; `/broken` breaks its connection, `/deadly` the whole app; upgrades echo.
 */
export interface TestApp {
  server: RouteServer
  /** How many requests of this path arrived. */
  arrived(url: string): number
  /** Requests that wait for `release()`. */
  held(): number
  release(): void
  /** Breaks every connection and stops listening, like a container that is killed. */
  kill(): Promise<void>
}

export async function startApp(name: string, port = 0): Promise<TestApp> {
  const held = new Set<ServerResponse>()
  const arrivals: (string | undefined)[] = []
  const sockets = new Set<Socket>()
  const kill = async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  }
  const server = createServer((request, response) => {
    arrivals.push(request.url)
    let body_bytes = 0
    request.on('data', (chunk: Buffer) => {
      body_bytes += chunk.length
    })
    request.on('end', () => {
      const seen: Seen = {
        app: name,
        method: request.method ?? '',
        url: request.url ?? '',
        headers: request.headers,
        raw: request.rawHeaders,
        body_bytes,
      }
      if (request.url === '/stream') response.write('first\n')
      if (request.url === '/hold' || request.url === '/stream') {
        held.add(response)
        response.on('close', () => held.delete(response))
      } else if (request.url === '/broken') {
        request.socket.destroy()
      } else if (request.url === '/deadly') {
        void kill()
      } else {
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify(seen))
      }
    })
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('upgrade', (request, socket) => {
    const accept = createHash('sha1')
      .update(`${request.headers['sec-websocket-key'] ?? ''}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64')
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    )
    socket.on('error', () => socket.destroy())
    socket.on('data', (chunk: Buffer) => socket.write(`${name}:${chunk.toString()}`))
    socket.on('end', () => socket.end())
  })
  await new Promise<void>((resolve, reject) =>
    server.once('error', reject).listen(port, '127.0.0.1', resolve),
  )
  return {
    server: { address: '127.0.0.1', port: (server.address() as AddressInfo).port },
    arrived: (url) => arrivals.filter((one) => one === url).length,
    held: () => held.size,
    release() {
      for (const response of held) response.end(`${name} done\n`)
    },
    kill,
  }
}
