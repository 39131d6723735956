import { Fatal } from '#server/kernel/jobs/definition'
import { missingProgram, REMEMBERED, tellingLines } from '#server/platform/engine/telling-lines'
import type { Release } from '../releases.ts'
import { containerSpec, ensureNetworks, ensureProcesses } from '../release-workload.ts'
import { startStack } from '../stack/start.ts'
import { announceStopFirst, requireVolumes, stopPrevious } from '../stop-first.ts'
import { exited, firstExit, verify } from '../verify.ts'
import type { DeployContext, Workshop } from '../work.ts'

const RELEASE_TIMEOUT_MS = 900_000
const TAIL = REMEMBERED
/** What a shell ends with for a program that it does not find. */
const NOT_FOUND = 127

const releaseOf = (shop: Workshop, context: DeployContext): Release =>
  shop.releases.find(context.state.release_id)!

/** Runs the release command in the new image, before any traffic goes to it. */
export async function releaseStep(shop: Workshop, context: DeployContext): Promise<void> {
  const { deployment_id, app_id } = context.payload
  const app = shop.ports.app(app_id)
  shop.advance(deployment_id, 'release')
  const release = releaseOf(shop, context)
  const { trigger } = shop.deployments.find(deployment_id)!
  const command = release.settings.release_command
  await ensureNetworks(shop.engine, release, app)
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
      tellingLines(tail),
    )
  if (result.oom_killed)
    throw new Fatal(
      'out_of_memory',
      'The release command used more memory than the limit of the app.',
      'Raise limits.memory_bytes.',
      tellingLines(tail),
    )
  if (result.exit_code !== 0) {
    const missing = result.exit_code === NOT_FOUND ? missingProgram(tail) : undefined
    const why = missing === undefined ? '' : `: the program \`${missing}\` does not exist in the image`
    throw new Fatal(
      'release_failed',
      `The release command exited with code ${result.exit_code}${why}.`,
      'Nothing was switched; the previous release serves on.',
      tellingLines(tail),
    )
  }
}

/** Starts the new instances beside the old ones, or after them where only one may write to a volume. */
export async function startStep(shop: Workshop, context: DeployContext): Promise<void> {
  const release = releaseOf(shop, context)
  await shop.scaler.interrupt(release.app_id)
  if (release.settings.stack) {
    const before = shop.releases.find(context.state.previous?.release_id ?? '')
    return startStack(shop, context, { release, before })
  }
  await stopPrevious(shop, context)
  await ensureProcesses(shop, release, shop.ports.app(context.payload.app_id), context.signal)
}

/** Services that a release of a stack has made itself; undefined for a release without one. */
const madeServices = ({ id, settings }: Release): ReadonlySet<string> | undefined =>
  settings.stack && new Set(settings.stack.filter(({ made_by }) => made_by === id).map(({ name }) => name))

/** Probes every new instance; see `verify`. */
export const verifyStep = (shop: Workshop, context: DeployContext): Promise<void> =>
  verify(
    shop,
    {
      release: releaseOf(shop, context),
      deployment_id: context.payload.deployment_id,
      step: 'verify',
      only: madeServices(releaseOf(shop, context)),
    },
    context.signal,
  )

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
  const ended = await firstExit(shop, release, AbortSignal.any([context.signal, over]), {
    only: madeServices(release),
  }).finally(() => shop.soaks.under_way.delete(app_id))
  context.signal.throwIfAborted()
  if (ended) throw await exited(shop, deployment_id, 'soak', ended, 'soon after it went live')
}
