import { Fatal } from '#server/kernel/jobs/definition'
import { missingProgram, REMEMBERED, tellingLines } from '#server/platform/engine/build/telling-lines'
import type { RunResult } from '#server/platform/engine/engine'
import { begunOnce } from '../begun-once.ts'
import type { Release } from '../releases.ts'
import { containerSpec, ensureNetworks, ensureProcesses } from '../release-workload.ts'
import { requireServer } from '../placing.ts'
import { runToEnd } from '../run-to-end.ts'
import { startStack } from '../stack/start.ts'
import { untilAlone } from '../serving.ts'
import { announceStopFirst, awaitData, requireVolumes, stopPrevious } from '../stop-first.ts'
import { exited, firstExit, verify } from '../verify.ts'
import type { DeployStep, DeployContext } from '../work.ts'

const RELEASE_TIMEOUT_MS = 900_000
/** What a shell ends with for a program that it does not find. */
const NOT_FOUND = 127

const releaseOf = (context: DeployContext, step: DeployStep): Release =>
  context.releases.find(step.state.release_id)!

/** Runs the release command in the new image, before any traffic goes to it. */
export async function releaseStep(context: DeployContext, step: DeployStep): Promise<void> {
  const { deployment_id, app_id } = step.payload
  const app = context.apps.get(app_id)
  const release = releaseOf(context, step)
  requireServer(context, release)
  awaitData(context, step, release)
  context.advance(deployment_id, 'release')
  const { trigger } = context.deployments.find(deployment_id)!
  const command = release.settings.release_command
  await ensureNetworks(context.engine, release, app)
  await requireVolumes(context, release, app)
  announceStopFirst(context, step)
  if (!command || trigger === 'rollback' || trigger === 'restart') return step.skip()
  const what = { purpose: 'release', words: 'the release command' }
  await begunOnce(context, step, what, async (onStarted) =>
    requireWell(await runReleaseCommand(context, step, { release, command, onStarted })),
  )
}

/** Throws why a release command did not end well. */
function requireWell({ tail, ...result }: RunResult & { tail: string[] }): void {
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

/**
 * It ends before the new instances start, which the app is counted for: only what it may use beyond
 * them, as in an app without any, needs room in the quotas of the project.
 */
function runReleaseCommand(
  context: DeployContext,
  step: DeployStep,
  { release, command, onStarted }: { release: Release; command: string; onStarted(): void },
): Promise<RunResult & { tail: string[] }> {
  const { deployment_id, app_id } = step.payload
  const app = context.apps.get(app_id)
  const { shell_command: _own, ...spec } = containerSpec(context.releases, release, app)
  const share = context.apps.beyond(app_id, spec.limits)
  return context.commands.run(app.project_id, share, share, async () => {
    // The command writes to the volumes of the app as well.
    await stopPrevious(context, step)
    context.logs.append(deployment_id, 'release', 'system', `Running the release command: ${command}`)
    const once = { purpose: 'release', timeout_ms: RELEASE_TIMEOUT_MS, onStarted }
    return runToEnd(
      context,
      step,
      { ...spec, ...once, shell_command: command },
      { step: 'release', last: REMEMBERED },
    )
  })
}

/** Starts the new instances beside the old ones, or after them where only one may write to a volume. */
export async function startStep(context: DeployContext, step: DeployStep): Promise<void> {
  const release = releaseOf(context, step)
  requireServer(context, release)
  await untilAlone(context, release.app_id)
  if (release.settings.stack) {
    const before = context.releases.find(step.state.previous?.release_id ?? '')
    return startStack(context, step, { release, before })
  }
  await stopPrevious(context, step)
  await ensureProcesses(context, release, context.apps.get(step.payload.app_id), step.signal)
}

/** Services that a release of a stack has made itself; undefined for a release without one. */
const madeServices = ({ id, settings }: Release): ReadonlySet<string> | undefined =>
  settings.stack && new Set(settings.stack.filter(({ made_by }) => made_by === id).map(({ name }) => name))

/** Probes every new instance; see `verify`. */
export const verifyStep = (context: DeployContext, step: DeployStep): Promise<void> =>
  verify(
    context,
    {
      release: releaseOf(context, step),
      deployment_id: step.payload.deployment_id,
      step: 'verify',
      only: madeServices(releaseOf(context, step)),
    },
    step.signal,
  )

/**
 * Watches the new release for a while with traffic on it; a crash or OOM kill gives traffic back.
 * Whoever stops the app does not wait for it.
 */
export async function soakStep(context: DeployContext, step: DeployStep): Promise<void> {
  const { deployment_id, app_id } = step.payload
  const { soak_seconds } = context.apps.get(app_id)
  const release = releaseOf(context, step)
  if (soak_seconds === 0 || context.soaks.areOver(app_id)) return step.skip()
  const stopped = new AbortController()
  context.soaks.under_way.set(app_id, stopped)
  const over = AbortSignal.any([AbortSignal.timeout(soak_seconds * 1000), stopped.signal])
  const ended = await firstExit(context, release, AbortSignal.any([step.signal, over]), {
    only: madeServices(release),
  }).finally(() => context.soaks.under_way.delete(app_id))
  step.signal.throwIfAborted()
  if (ended)
    throw await exited(context, { deployment_id, step: 'soak', release }, ended, 'soon after it went live')
}
