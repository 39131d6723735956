import { setTimeout as delay } from 'node:timers/promises'
import { hasWeb } from './processes.ts'
import type { Instance } from '#server/platform/engine/engine'
import type { Release } from './releases.ts'
import { NOTHING } from './routing.ts'
import { targetOf, type Workshop } from './work.ts'

/** How long requests in flight may still use the old release. */
const DRAIN_LIMIT_MS = 30_000
const DRAIN_POLL_MS = 100

/**
 * Sends the app's domains to the instances of a release; answers how many serve, which for an app without
 * requests is how many run.
 */
export async function routeTo(shop: Workshop, app_id: string, release: Release | undefined): Promise<number> {
  const instances = release ? await shop.engine.instances({ release_id: release.id }) : []
  const target = release ? targetOf(instances, release.settings) : NOTHING
  await shop.routing.serve(app_id, target)
  return !release || hasWeb(release.settings)
    ? target.addresses.length
    : instances.filter(({ state }) => state === 'running').length
}

/**
 * Waits until nobody uses the instances of a release any more on any of the ports that domains lead to, at
 * most the drain limit.
 */
export const drain = async (shop: Workshop, release: Release, signal?: AbortSignal): Promise<void> =>
  drainInstances(shop, release, await shop.engine.instances({ release_id: release.id }), signal)

/** The same for some of its instances. */
export async function drainInstances(
  shop: Workshop,
  release: Release,
  instances: readonly Instance[],
  signal?: AbortSignal,
): Promise<void> {
  const end = shop.clock.monotonic_ms() + DRAIN_LIMIT_MS
  const { addresses, port } = targetOf(instances, release.settings)
  const ports = new Set([
    port,
    ...shop.ports
      .routes(release.app_id, { addresses, port })
      .flatMap((route) => route.servers.map((server) => server.port)),
  ])
  for (const address of addresses) {
    for (const one of ports) {
      while (shop.clock.monotonic_ms() < end && (await shop.ingress.activeConnections(address, one)) > 0)
        await delay(DRAIN_POLL_MS, undefined, { signal })
    }
  }
}
