import { subscribe } from 'node:diagnostics_channel'
import { type IncomingMessage, Server } from 'node:http'

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
 * Ends connections that send their headers too slowly, or nothing at all, for every HTTP server of this
 * process that listens from now on. Nitro makes its server itself and hands it to nobody; Node tells of it
 * just before it listens, when all limits can still be set.
 */
export function limitConnections(): void {
  subscribe('tracing:net.server.listen:asyncStart', (message) => {
    const { server } = message as { server?: unknown }
    if (server instanceof Server) Object.assign(server, LIMITS)
  })
}
