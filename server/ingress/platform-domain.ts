import { isIP } from 'node:net'
import type { Config } from '#server/kernel/config'
import type { Log } from '#server/kernel/log'
import type { Ingress, Route } from '#server/platform/ingress/ingress'

export interface PlatformDomainOptions {
  ingress: Pick<Ingress, 'setRoute' | 'removeRoute'>
  config: Pick<Config, 'host' | 'port'>
  log: Log
  /** What the edge sends along, so that we know it from everybody else on this machine. */
  proof: string
  /** The name under which the dashboard and the API are served; null for none. */
  hostname(): string | null
}
/**
 * The edge's route to Portreeve itself, for the dashboard's own domain. The plain port goes on answering
 * beside it.
 */
export interface PlatformDomain {
  /** What the edge should have for it: one route, or none without a domain. */
  routes(): Route[]
  /** Brings the edge's route to what the settings say. */
  apply(): Promise<void>
  /** The same in the background, tried again until it works. */
  applySoon(): void
  /** Resolves once what was last asked for has been tried at the edge. Never rejects. */
  settled(): Promise<void>
}

const ROUTE_ID = 'platform'
/** Of this name alone: names below it may belong to somebody else. */
const HSTS = `max-age=${365 * 86_400}`
const RETRY_MS = 5_000

/** Where the edge, which has the network of this machine, reaches this process. */
function ownAddress(host: string): string {
  if (host === '::') return '::1'
  return isIP(host) === 0 || host === '0.0.0.0' ? '127.0.0.1' : host
}

export function createPlatformDomain({
  ingress,
  config,
  log,
  proof,
  hostname,
}: PlatformDomainOptions): PlatformDomain {
  const routes = (): Route[] => {
    const name = hostname()
    return name === null
      ? []
      : [
          {
            id: ROUTE_ID,
            hostnames: [name],
            servers: [{ address: ownAddress(config.host), port: config.port }],
            force_https: true,
            response_headers: { 'Strict-Transport-Security': HSTS },
            proof,
          },
        ]
  }
  const apply = async () => {
    const [route] = routes()
    await (route ? ingress.setRoute(route) : ingress.removeRoute(ROUTE_ID))
  }
  let last = Promise.resolve()
  const applySoon = () => {
    last = apply().catch((error: unknown) => {
      log.warn('The dashboard domain could not be set at the edge yet', {
        reason: (error as Error).message,
      })
      setTimeout(applySoon, RETRY_MS).unref()
    })
  }
  return { routes, apply, applySoon, settled: () => last }
}
