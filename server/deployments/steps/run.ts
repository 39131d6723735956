import { setTimeout as wait } from 'node:timers/promises'
import { Fatal } from '#server/kernel/jobs/definition'
import type { Instance } from '#server/platform/engine/engine'
import { unstartable } from '#server/platform/engine/start-failure'
import { networkOf } from '#server/platform/engine/network-name'
import { MAIN_PROCESS } from '#server/platform/engine/workload'
import { instancesOf, processesOf } from '../processes.ts'
import { findOpenPort, waitUntilReady } from '../probe.ts'
import type { Release } from '../releases.ts'
import { containerSpec, ensureProcesses } from '../release-workload.ts'
import { announceStopFirst, requireVolumes, stopPrevious } from '../stop-first.ts'
import type { DeployContext, Workshop } from '../work.ts'

const RELEASE_TIMEOUT_MS = 900_000
const TAIL = 30

const releaseOf = (shop: Workshop, context: DeployContext): Release =>
  shop.releases.find(context.state.release_id)!

/** Last lines that an instance printed; also put into the deployment's log. */
export async function lastLines(
  shop: Workshop,
  deployment_id: string,
  step: string,
  instance: Instance,
): Promise<string[]> {
  const lines: string[] = []
  try {
    for await (const line of shop.engine.logs(instance.id, { tail: TAIL })) {
      shop.logs.append(deployment_id, step, line.stream, line.text)
      lines.push(line.text)
    }
  } catch (error) {
    shop.log.debug('The log of an instance cannot be read', { instance: instance.id, error })
  }
  return lines
}

/** The sentence for a container that ended by itself. */
export async function exited(
  shop: Workshop,
  deployment_id: string,
  step: string,
  instance: Instance,
  when: string,
): Promise<Fatal> {
  const log = await lastLines(shop, deployment_id, step, instance)
  if (instance.oom_killed)
    return new Fatal(
      'out_of_memory',
      `The app was ended ${when} because it used more memory than its limit.`,
      'Raise limits.memory_bytes of the app, or make it use less.',
      log,
    )
  const refused = unstartable(instance.exit_code, log)
  if (refused) return new Fatal(refused.code, refused.message, refused.hint ?? null, log)
  const code = instance.exit_code ?? 1
  const { process } = instance
  return new Fatal(
    'exited',
    process === MAIN_PROCESS
      ? `The app exited with code ${code} ${when}.`
      : `The process ${process} of the app exited with code ${code} ${when}.`,
    code !== 0
      ? 'Its last lines are in the log.'
      : process === MAIN_PROCESS
        ? 'A web app must keep running in the foreground; look at its start command. For an app without requests, set processes.'
        : `A process must keep running in the foreground. Set processes.${process}.replicas to 0 for a command that is run by hand.`,
    log,
  )
}

/** Runs the release command in the new image, before any traffic goes to it. */
export async function releaseStep(shop: Workshop, context: DeployContext): Promise<void> {
  const { deployment_id, app_id } = context.payload
  const app = shop.ports.app(app_id)
  shop.advance(deployment_id, 'release')
  const release = releaseOf(shop, context)
  const { trigger } = shop.deployments.find(deployment_id)!
  const command = release.settings.release_command
  await shop.engine.ensureNetwork(networkOf(app), { project: app.project_id })
  await requireVolumes(shop, release)
  announceStopFirst(shop, context)
  if (!command || trigger === 'rollback' || trigger === 'restart') return context.skip()
  // The command writes to the volumes of the app as well.
  await stopPrevious(shop, context)
  shop.logs.append(deployment_id, 'release', 'system', `Running the release command: ${command}`)
  const tail: string[] = []
  const { shell_command: _own, ...spec } = containerSpec(shop.releases, release, app)
  const result = await shop.engine.runOnce(
    {
      ...spec,
      shell_command: command,
      purpose: 'release',
      timeout_ms: RELEASE_TIMEOUT_MS,
      onLog(line) {
        shop.logs.append(deployment_id, 'release', line.stream, line.text)
        tail.push(line.text)
        if (tail.length > TAIL) tail.shift()
      },
    },
    context.signal,
  )
  if (result.timed_out)
    throw new Fatal(
      'release_timeout',
      'The release command did not end within 15 minutes.',
      'Nothing was switched; the previous release serves on.',
      tail,
    )
  if (result.oom_killed)
    throw new Fatal(
      'out_of_memory',
      'The release command used more memory than the limit of the app.',
      'Raise limits.memory_bytes.',
      tail,
    )
  if (result.exit_code !== 0)
    throw new Fatal(
      'release_failed',
      `The release command exited with code ${result.exit_code}.`,
      'Nothing was switched; the previous release serves on.',
      tail,
    )
}

/** Starts the new instances beside the old ones, or after them where only one may write to a volume. */
export async function startStep(shop: Workshop, context: DeployContext): Promise<void> {
  const release = releaseOf(shop, context)
  await shop.scaler.interrupt(release.app_id)
  await stopPrevious(shop, context)
  await ensureProcesses(shop, release, shop.ports.app(context.payload.app_id), context.signal)
}

const ENDED: readonly Instance['state'][] = ['exited', 'dead', 'restarting']

/**
 * An instance that has ended, if there is one; asks the engine until `signal` aborts, at first about those
 * that are `known`.
 */
async function firstExit(
  shop: Workshop,
  release: Pick<Release, 'id' | 'settings'>,
  signal: AbortSignal,
  known?: Instance[],
): Promise<Instance | undefined> {
  const expected = instancesOf(release.settings)
  for (let instances = known; !signal.aborted; instances = undefined) {
    instances ??= await shop.engine.instances({ release_id: release.id })
    const ended = instances.find((instance) => ENDED.includes(instance.state) || instance.oom_killed)
    if (ended) return ended
    if (instances.length < expected)
      throw new Fatal('instance_gone', 'An instance of the release was removed from outside.', 'Try again.')
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, 400)
      function done() {
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
        resolve()
      }
      signal.addEventListener('abort', done, { once: true })
    })
  }
  return undefined
}

/** Probes every new instance; see `verify`. */
export const verifyStep = (shop: Workshop, context: DeployContext): Promise<void> =>
  verify(
    shop,
    {
      release: releaseOf(shop, context),
      deployment_id: context.payload.deployment_id,
      step: 'verify',
    },
    context.signal,
  )

/**
 * Probes every instance of a release from outside; fails with the reason when one ends, is gone or never
 * becomes ready.
 * @param told the deployment in whose log their last lines are put, and the step that they are put under.
 */
export async function verify(
  shop: Workshop,
  { release, ...told }: { release: Release; deployment_id: string; step: string },
  signal: AbortSignal,
): Promise<void> {
  const { settings, id } = release
  const instances = await shop.engine.instances({ release_id: id })
  const ready = new AbortController()
  const probing = AbortSignal.any([signal, ready.signal])
  const watch = firstExit(shop, release, probing, instances)
  const graces = new Map(processesOf(settings).map(({ name, grace_s }) => [name, grace_s]))
  const probes = Promise.all(
    instances.map(async (instance) =>
      instance.process === MAIN_PROCESS
        ? waitUntilReady(instance.address ?? '', settings.port, settings.health_check, probing, () =>
            shop.clock.monotonic_ms(),
          )
        : staysUp(graces.get(instance.process) ?? 0, probing),
    ),
  )
  try {
    const first = await Promise.race([watch, probes])
    if (first && !Array.isArray(first))
      throw await exited(shop, told.deployment_id, told.step, first, 'before it was ready')
    const results = Array.isArray(first) ? first : await probes
    const late = results.findIndex((result) => !result.ready)
    if (late === -1) return
    throw await neverReady(shop, told, {
      instance: instances[late]!,
      last: results[late]!.last,
      settings,
    })
  } finally {
    ready.abort()
    await Promise.allSettled([watch, probes])
  }
}

/** A process that nobody can ask is ready when it stays up for its grace; an exit is seen by `firstExit`. */
async function staysUp(grace_s: number, signal: AbortSignal): Promise<{ ready: boolean; last: string }> {
  await wait(grace_s * 1000, undefined, { signal }).catch(() => undefined)
  return { ready: true, last: '' }
}

async function neverReady(
  shop: Workshop,
  told: { deployment_id: string; step: string },
  { instance, last, settings }: { instance: Instance; last: string; settings: Release['settings'] },
): Promise<Fatal> {
  const { port, health_check } = settings
  const image = await shop.engine.findImage(instance.image)
  const other =
    instance.address && last === 'nothing listens'
      ? await findOpenPort(instance.address, image?.exposed_ports ?? [])
      : undefined
  const log = await lastLines(shop, told.deployment_id, told.step, instance)
  const what = health_check.type === 'http' ? `GET ${health_check.path} on port ${port}` : `port ${port}`
  return new Fatal(
    'not_ready',
    `The app did not become ready within ${health_check.grace_s} seconds: ${what}: ${last}.`,
    other
      ? `It listens on port ${other}: set port to ${other}, or listen on the PORT variable.`
      : 'Listen on 0.0.0.0 and the port that the PORT variable names, or raise health_check.grace_s. For an app that takes no requests, set processes.',
    log,
  )
}

/**
 * Watches the new release for a while with traffic on it; a crash or OOM kill gives traffic back. Whoever
 * stops the app does not wait for it.
 */
export async function soakStep(shop: Workshop, context: DeployContext): Promise<void> {
  const { deployment_id, app_id } = context.payload
  const { soak_seconds } = shop.ports.app(app_id)
  const release = releaseOf(shop, context)
  if (soak_seconds === 0 || shop.soaks.areOver(app_id)) return context.skip()
  const stopped = new AbortController()
  shop.soaks.under_way.set(app_id, stopped)
  const over = AbortSignal.any([AbortSignal.timeout(soak_seconds * 1000), stopped.signal])
  const ended = await firstExit(shop, release, AbortSignal.any([context.signal, over])).finally(() =>
    shop.soaks.under_way.delete(app_id),
  )
  context.signal.throwIfAborted()
  if (ended) throw await exited(shop, deployment_id, 'soak', ended, 'soon after it went live')
}
