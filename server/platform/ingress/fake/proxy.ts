import { own } from '#server/kernel/own'
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type EdgeRequest,
  type Route,
  type RouteServer,
  type RouteTraffic,
  WAKE_LIMIT_MS,
} from '../ingress.ts'
import { matchRedirect } from '../render/redirects.ts'

/**
 * A small HTTP proxy behind the fake edge, for tests only: picks a server by `Host`, streams both ways,
 * upgrades WebSockets.
 */
export interface FakeProxy {
  listen(): Promise<{ host: string; port: number }>
  /** Requests in flight and upgraded connections on a server. */
  activeConnections(address: string, port: number): number
  traffic(route_id: string): RouteTraffic
  close(): Promise<void>
}

const WAKE_POLL_MS = 10

export function createFakeProxy(
  routeOf: (hostname: string, path: string) => Route | undefined,
  onAnswered: (request: EdgeRequest) => void,
  onWake: (app_id: string) => 'held' | 'refused' | undefined,
): FakeProxy {
  const active = new Map<string, number>()
  const counters = new Map<string, RouteTraffic>()
  const turns = new Map<string, number>()
  const upgraded = new Set<Socket>()
  let server: Server | undefined
  let answers = 0

  const countersOf = (route_id: string): RouteTraffic => {
    const known = counters.get(route_id) ?? {
      route_id,
      requests: 0,
      errors_5xx: 0,
      bytes_in: 0,
      bytes_out: 0,
      sessions: 0,
    }
    counters.set(route_id, known)
    return known
  }
  const hold = ({ address, port }: RouteServer, change: 1 | -1) =>
    active.set(`${address} ${port}`, (active.get(`${address} ${port}`) ?? 0) + change)

  const hostnameOf = (incoming: IncomingMessage): string =>
    (incoming.headers.host ?? '').replace(/:\d+$/, '').replace(/\.$/, '').toLowerCase()

  /** The route and the server of a request; servers take turns. */
  function pick(incoming: IncomingMessage): {
    route?: Route
    target?: RouteServer
    location?: [status: number, target: string]
  } {
    const hostname = hostnameOf(incoming)
    const [path = '', query] = (incoming.url ?? '').split(/\?(.*)/s)
    const route = routeOf(hostname, path)
    if (!route) return {}
    const alias = own(route.aliases, hostname)
    if (alias !== undefined)
      return {
        route,
        location: [308, `http://${alias}:${incoming.socket.localPort}${incoming.url}`],
      }
    const match = matchRedirect(route.redirects ?? [], path, query)
    if (match) return { route, location: [match.redirect.status, match.location] }
    const turn = turns.get(route.id) ?? 0
    turns.set(route.id, turn + 1)
    return { route, target: route.servers[turn % Math.max(route.servers.length, 1)] }
  }

  /** The same once an app that sleeps is awake; as it is when nobody wakes it. */
  async function pickAwake(incoming: IncomingMessage): Promise<ReturnType<typeof pick>> {
    const end = Date.now() + WAKE_LIMIT_MS
    for (;;) {
      const picked = pick(incoming)
      const { route, target, location } = picked
      if (!route?.asleep || route.app_id === undefined || target || location || Date.now() > end)
        return picked
      if (onWake(route.app_id) !== 'held') return picked
      await delay(WAKE_POLL_MS)
    }
  }

  function forward(
    incoming: IncomingMessage,
    { path: prefix = '/', strip_path }: Route,
    target: RouteServer,
  ) {
    const path =
      strip_path && prefix !== '/' ? incoming.url?.slice(prefix.length).replace(/^(?!\/)/, '/') : incoming.url
    const headers = {
      ...incoming.headers,
      'x-forwarded-for': incoming.socket.remoteAddress ?? '',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': incoming.headers.host ?? '',
    }
    return request({
      host: target.address,
      port: target.port,
      method: incoming.method,
      path,
      headers,
      agent: false,
    })
  }

  /** Tells of a request once its answer has ended, as the log of the edge does. */
  function watch(
    incoming: IncomingMessage,
    response: ServerResponse,
    app_id: string,
    target: RouteServer | undefined,
  ): void {
    const at_ms = Date.now()
    response.on('close', () =>
      onAnswered({
        id: `FAKE-${++answers}`,
        app_id,
        at_ms,
        client: incoming.socket.remoteAddress ?? '',
        method: incoming.method ?? '',
        host: hostnameOf(incoming),
        target: incoming.url ?? '/',
        version: `HTTP/${incoming.httpVersion}`,
        secure: false,
        status: response.statusCode,
        bytes_in: 0,
        bytes_out: 0,
        user_agent: incoming.headers['user-agent'] ?? '',
        server: target ? `${target.address}:${target.port}` : null,
        end: '--',
        receive_ms: 0,
        queue_ms: 0,
        connect_ms: 0,
        response_ms: Date.now() - at_ms,
        total_ms: Date.now() - at_ms,
      }),
    )
  }

  function start(): Server {
    const created = createServer(async (incoming, response) => {
      const { route, target, location } = await pickAwake(incoming)
      if (route?.app_id !== undefined) watch(incoming, response, route.app_id, target)
      if (!route)
        return void response
          .writeHead(404, {
            'content-type': 'text/html; charset=utf-8',
            'cache-control': 'no-store',
          })
          .end('<h1>Not found</h1>')
      const counted = countersOf(route.id)
      counted.requests++
      if (location)
        return void response.writeHead(location[0], { location: location[1], 'content-length': 0 }).end()
      if (!target) {
        counted.errors_5xx++
        return void response
          .writeHead(503, {
            'content-type': 'text/html; charset=utf-8',
            'cache-control': 'no-store',
          })
          .end('<h1>The app is not running</h1>')
      }
      hold(target, 1)
      counted.sessions++
      const outgoing = forward(incoming, route, target)
      response.on('close', () => {
        hold(target, -1)
        counted.sessions--
        outgoing.destroy()
      })
      incoming.on('data', (chunk: Buffer) => {
        counted.bytes_in += chunk.length
      })
      outgoing.on('response', (answer) => {
        if ((answer.statusCode ?? 0) >= 500) counted.errors_5xx++
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.on('data', (chunk: Buffer) => {
          counted.bytes_out += chunk.length
        })
        answer.pipe(response)
      })
      outgoing.on('error', () => {
        counted.errors_5xx++
        if (response.headersSent) response.destroy()
        else
          response
            .writeHead(503, {
              'content-type': 'text/html; charset=utf-8',
              'cache-control': 'no-store',
            })
            .end('<h1>The app is not running</h1>')
      })
      incoming.pipe(outgoing)
    })
    created.on('upgrade', async (incoming, socket: Socket, head) => {
      const { route, target } = await pickAwake(incoming)
      if (!route || !target) return void socket.destroy()
      const outgoing = forward(incoming, route, target)
      hold(target, 1)
      upgraded.add(socket)
      socket.on('close', () => {
        hold(target, -1)
        upgraded.delete(socket)
        outgoing.destroy()
      })
      socket.on('error', () => socket.destroy())
      outgoing.on('error', () => socket.destroy())
      outgoing.on('upgrade', (answer, upstream, first) => {
        const lines = Object.entries(answer.headers).map(([name, value]) => `${name}: ${String(value)}\r\n`)
        socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`)
        if (first.length > 0) socket.write(first)
        if (head.length > 0) upstream.write(head)
        upstream.on('error', () => socket.destroy())
        socket.on('close', () => upstream.destroy())
        socket.pipe(upstream).pipe(socket)
      })
      outgoing.end()
    })
    return created
  }

  return {
    async listen() {
      if (!server) {
        server = start()
        await new Promise<void>((resolve, reject) =>
          server?.once('error', reject).listen(0, '127.0.0.1', resolve),
        )
      }
      return { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
    },
    activeConnections: (address, port) => active.get(`${address} ${port}`) ?? 0,
    traffic: (route_id) => ({ ...countersOf(route_id) }),
    async close() {
      for (const socket of upgraded) socket.destroy()
      server?.closeAllConnections()
      await new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve()))
      server = undefined
    },
  }
}
