import { setTimeout as delay } from 'node:timers/promises'
import { hasWeb, instancesOfRelease } from './processes.ts'
import type { Instance } from '#server/platform/engine/engine'
import type { Release } from './releases.ts'
import { NOTHING } from './routing.ts'
import { targetOf, type DeployContext } from './work.ts'

/**
 * Resolves once only the job that asks makes and ends instances of the app. What was begun before it would bring back
 * what the job has just ended, with the data of before.
 */
export async function untilAlone({ scaler, ports }: DeployContext, app_id: string): Promise<void> {
  await scaler.interrupt(app_id)
  await ports.leftByReconciler(app_id)
}

/** How long requests in flight may still use the old release. */
const DRAIN_LIMIT_MS = 30_000
const DRAIN_POLL_MS = 100

/**
 * Sends the app's domains to the instances of a release; answers how many serve, which for an app without
 * requests is how many run.
 */
export async function routeTo(
  context: DeployContext,
  app_id: string,
  release: Release | undefined,
): Promise<number> {
  const instances = release ? await instancesOfRelease(context.engine, release) : []
  const target = release ? targetOf(instances, release.settings) : NOTHING
  await context.routing.serve(app_id, target)
  return !release || (hasWeb(release.settings) && !release.settings.stack)
    ? target.addresses.length
    : instances.filter(({ state }) => state === 'running').length
}

/**
 * Waits until nobody uses the instances of a release any more on any of the ports that domains lead to, at
 * most the drain limit.
 * @param only services of a stack that are about to end; all when it is left out.
 */
export async function drain(
  context: DeployContext,
  release: Release,
  signal?: AbortSignal,
  only?: ReadonlySet<string>,
): Promise<void> {
  const instances = await instancesOfRelease(context.engine, release)
  const ending = instances.filter(({ process }) => !only || only.has(process))
  return drainInstances(context, release, ending, signal)
}

/** The same for some of its instances. */
export async function drainInstances(
  context: DeployContext,
  release: Release,
  instances: readonly Instance[],
  signal?: AbortSignal,
): Promise<void> {
  const end = context.clock.monotonic_ms() + DRAIN_LIMIT_MS
  const target = targetOf(instances, release.settings)
  const own = [target, ...Object.values(target.services ?? {})]
  const routed = context.ports.routes(release.app_id, target).flatMap(({ servers }) => servers)
  const ports = new Set([...own, ...routed].map(({ port }) => port))
  for (const address of new Set(own.flatMap(({ addresses }) => addresses))) {
    for (const port of ports) {
      while (
        context.clock.monotonic_ms() < end &&
        (await context.ingress.activeConnections(address, port)) > 0
      )
        await delay(DRAIN_POLL_MS, undefined, { signal })
    }
  }
}
