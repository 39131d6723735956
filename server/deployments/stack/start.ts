import { Fatal } from '#server/kernel/jobs/definition'
import { begunOnce } from '../begun-once.ts'
import { processesOf } from '../processes.ts'
import { serviceSpec, workloadOf } from '../release-workload.ts'
import type { Release, ReleaseService } from '../releases.ts'
import { runToEnd } from '../run-to-end.ts'
import { drain } from '../serving.ts'
import { verify } from '../verify.ts'
import { type DeployStep, targetOf, type DeployContext } from '../work.ts'
import { instancesOfRelease } from '../processes.ts'
import { endRelease } from './ending.ts'

const ONE_OFF_TIMEOUT_MS = 900_000
const TAIL = 30

const writes = ({ volumes }: ReleaseService): string[] =>
  volumes.flatMap(({ volume_id, read_only }) => (read_only ? [] : [volume_id]))

/** Services of the release before that hold a volume which a changed service needs for itself. */
export function contestedServices(before: Release | undefined, release: Release): Map<string, string[]> {
  const contested = new Map<string, string[]>()
  for (const service of release.settings.stack ?? []) {
    if (service.made_by !== release.id) continue
    const needed = new Set(writes(service))
    const holders = (before?.settings.stack ?? [])
      .filter((old) => old.name === service.name || !isKept(old, release))
      .filter((old) => writes(old).some((id) => needed.has(id)))
    if (holders.length > 0)
      contested.set(
        service.name,
        holders.map(({ name }) => name),
      )
  }
  return contested
}

const isKept = (old: ReleaseService, release: Release): boolean =>
  (release.settings.stack ?? []).some(({ name, made_by }) => name === old.name && made_by === old.made_by)

/**
 * Starts the services that changed beside those that run, each once those that it depends on are as far as the
 * file asks. What holds a volume ends before the service that takes its place starts.
 */
export async function startStack(
  context: DeployContext,
  step: DeployStep,
  { release, before }: { release: Release; before: Release | undefined },
): Promise<void> {
  const { app_id, deployment_id } = step.payload
  const place = context.apps.get(app_id)
  const stack = release.settings.stack ?? []
  const contested = contestedServices(before, release)
  const made = stack.filter(({ made_by }) => made_by === release.id).map(({ name }) => name)
  const fresh = { release, deployment_id, awaited: new Set(made) }
  for (const service of stack) {
    if (service.made_by === release.id) await waitForDependencies(context, fresh, service, step.signal)
    if (service.one_off) {
      if (service.made_by === release.id) await runOneOff(context, step, release, service)
      continue
    }
    const holders = contested.get(service.name)
    if (before && holders) await endServices(context, step, before, new Set(holders))
    const process = processesOf(release.settings).find(({ name }) => name === service.name)!
    await context.engine.ensureRelease(workloadOf(context.releases, release, place, process), step.signal)
    if (service.made_by === release.id)
      context.logs.append(deployment_id, 'start', 'system', `Started the service ${service.name}.`)
  }
  const kept = stack.filter(({ made_by }) => made_by !== release.id).map(({ name }) => name)
  if (kept.length > 0)
    context.logs.append(deployment_id, 'start', 'system', `Not changed, and not touched: ${kept.join(', ')}.`)
}

/** Waits for those of the awaited services that must be healthy before this one may start. */
export async function waitForDependencies(
  context: DeployContext,
  told: { release: Release; deployment_id: string; awaited: ReadonlySet<string> },
  { depends_on }: ReleaseService,
  signal: AbortSignal,
): Promise<void> {
  const needed = depends_on
    .filter(({ condition, service }) => condition === 'service_healthy' && told.awaited.has(service))
    .map(({ service }) => service)
  if (needed.length > 0) await verify(context, { ...told, step: 'start', only: new Set(needed) }, signal)
}

/** Takes the traffic from services of the release before, and ends them. */
async function endServices(
  context: DeployContext,
  step: DeployStep,
  before: Release,
  names: ReadonlySet<string>,
): Promise<void> {
  const instances = await instancesOfRelease(context.engine, before)
  if (!instances.some(({ process }) => names.has(process))) return
  // Before anything is stopped, so that whatever happens next the undo knows of it.
  step.state.stopped_previous = true
  step.save()
  const others = instances.filter(({ process }) => !names.has(process))
  await context.routing.serve(before.app_id, targetOf(others, before.settings))
  await drain(context, before, step.signal, names)
  await endRelease(context.engine, before, undefined, names)
}

/** Runs a service to its end that others wait for, or that the file says is not started again. */
async function runOneOff(
  context: DeployContext,
  step: DeployStep,
  release: Release,
  service: ReleaseService,
): Promise<void> {
  const { deployment_id, app_id } = step.payload
  const { trigger } = context.deployments.find(deployment_id)!
  if (trigger === 'rollback' || trigger === 'restart') return
  const { name } = service
  const what = { purpose: `service-${name}`, words: `the service ${name}` }
  await begunOnce(context, step, what, async (onStarted) => {
    const place = context.apps.get(app_id)
    const { process: _one_off, ...spec } = serviceSpec(context.releases, release, place, service)
    const share = context.apps.beyond(app_id, spec.limits)
    const { tail, ...result } = await context.commands.run(place.project_id, share, share, () => {
      context.logs.append(deployment_id, 'start', 'system', `Running the service ${name} to its end.`)
      return runToEnd(
        context,
        step,
        { ...spec, purpose: what.purpose, timeout_ms: ONE_OFF_TIMEOUT_MS, onStarted },
        { step: 'start', last: TAIL },
      )
    })
    if (result.exit_code === 0 && !result.timed_out) return
    throw new Fatal(
      result.timed_out ? 'release_timeout' : 'release_failed',
      result.timed_out
        ? `The service ${name} did not end within 15 minutes, as the file says that it does.`
        : `The service ${name}, which runs to its end, exited with code ${result.exit_code}.`,
      'Nothing was switched; the previous release serves on.',
      tail,
    )
  })
}
