import { setTimeout as wait } from 'node:timers/promises'
import { Fatal } from '#server/kernel/jobs/definition'
import { processesOf } from '../processes.ts'
import { workloadOf } from '../release-workload.ts'
import type { Release } from '../releases.ts'
import { verify } from '../verify.ts'
import type { DeployContext } from '../work.ts'
import { waitForDependencies } from './start.ts'

/** A release that ran before and is to run as it did. */
export interface Again {
  release: Release
  /** Services of a stack that somebody has stopped, and that stay so. */
  stopped?: ReadonlySet<string>
}

/** How often a service of a stack is started that ends while those that it needs come up. */
const STARTS = 5
const PAUSE_MS = 1000

const namesOf = ({ release, stopped }: Again): ReadonlySet<string> =>
  new Set(
    processesOf(release.settings)
      .map(({ name }) => name)
      .filter((name) => !stopped?.has(name)),
  )

/**
 * Starts the processes of a release that has run before. The services of a stack start in the order that its file
 * asks for: one that ends without its database would be taken for one that is broken.
 */
export async function startAgain(context: DeployContext, again: Again, signal: AbortSignal): Promise<void> {
  const { release } = again
  const place = context.apps.get(release.app_id)
  const awaited = namesOf(again)
  for (const process of processesOf(release.settings)) {
    if (!awaited.has(process.name)) continue
    const service = release.settings.stack?.find(({ name }) => name === process.name)
    const told = { release, deployment_id: release.deployment_id, awaited }
    if (service) await waitForDependencies(context, told, service, signal)
    await context.engine.ensureRelease(workloadOf(context.releases, release, place, process), signal)
  }
}

/**
 * Waits until all of them may be used. A file may leave it to the engine to start a service again until what it
 * needs is there, so one that ends is not given up at once.
 */
export async function untilReadyAgain(
  context: DeployContext,
  again: Again,
  signal: AbortSignal,
): Promise<void> {
  const { release } = again
  const told = { release, deployment_id: release.deployment_id, step: 'start' }
  const only = release.settings.stack ? { only: namesOf(again) } : {}
  for (let starts = 1; ; starts += 1) {
    try {
      return await verify(context, { ...told, ...only }, signal)
    } catch (error) {
      const has_ended = error instanceof Fatal && error.code === 'exited'
      if (!release.settings.stack || !has_ended || starts === STARTS) throw error
    }
    await wait(PAUSE_MS * starts, undefined, { signal })
    await startAgain(context, again, signal)
  }
}
