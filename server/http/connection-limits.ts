import { subscribe } from 'node:diagnostics_channel'
import { type IncomingMessage, type RequestListener, Server } from 'node:http'
import type { Socket } from 'node:net'
import { compileNetworks } from '#server/kernel/networks'
import { peerOf } from '#server/identity/login-limit'
import { oneAfterAnother } from './one-after-another.ts'
import { plainAddress } from './request.ts'
import { endSmallPieces } from './whole-pieces.ts'

/**
 * What a connection may take its time for. The whole request has an hour, since an upload of gigabytes may
 * need it; its body has shorter limits of its own while it is read.
 */
const LIMITS = {
  headersTimeout: 15_000,
  requestTimeout: 3_600_000,
  connectionsCheckingInterval: 5_000,
  /**
   * What a server does not speak it passes over, and answers as if nobody had asked for it. Clients of HTTP/2 offer
   * it so on plain ports.
   */
  shouldUpgradeCallback: ({ headers }: IncomingMessage) => headers.upgrade?.toLowerCase() === 'websocket',
}

/**
 * Connections that are open at once. Each takes a descriptor of the process, which has 65,536 for all that it does:
 * without any left it reads no file and reaches no engine.
 */
const MOST = { of_address: 2_000, of_all: 8_000 }
/** Of this machine: the edge, which bounds its own clients, and whoever has come in already. */
const isOfThisMachine = compileNetworks(['127.0.0.0/8', '::1'])

/** Ends further connections of an address that has so many, and of all addresses but our own. */
export function holdConnections(
  server: Server,
  { of_address, of_all, isOwn }: { of_address: number; of_all: number; isOwn(address: string): boolean },
): void {
  const open = new Map<string, number>()
  let total = 0
  server.prependListener('connection', (socket: Socket) => {
    const address = plainAddress(socket.remoteAddress ?? '')
    if (isOwn(address)) return
    const peer = peerOf(address)
    const count = open.get(peer) ?? 0
    if (count >= of_address || total >= of_all) return void socket.destroy()
    open.set(peer, count + 1)
    total += 1
    socket.once('close', () => {
      total -= 1
      const left = open.get(peer)! - 1
      if (left > 0) open.set(peer, left)
      else open.delete(peer)
    })
  })
}

/** Servers that are limited already: one that moves to another address listens a second time. */
const limited = new WeakSet<Server>()

/**
 * Ends connections that send their headers too slowly, or nothing at all, or bodies in crumbs, and bounds how many there
 * are, for every HTTP server of this process that listens from now on. Nitro makes its server itself and hands it to nobody; Node tells of it
 * just before it listens, when all limits can still be set.
 */
export function limitConnections(): void {
  subscribe('tracing:net.server.listen:asyncStart', (message) => {
    const { server } = message as { server?: unknown }
    if (!(server instanceof Server)) return
    Object.assign(server, LIMITS)
    if (limited.has(server)) return
    limited.add(server)
    holdConnections(server, { ...MOST, isOwn: isOfThisMachine })
    const serve = server.listeners('request') as RequestListener[]
    server.removeAllListeners('request')
    const inTurn = oneAfterAnother((req, res) => {
      for (const listener of serve) listener.call(server, req, res)
    })
    server.on('request', (req, res) => {
      // From its beginning: the body of a request that waits for those before it is cut into pieces already.
      endSmallPieces(req)
      inTurn(req, res)
    })
  })
}
