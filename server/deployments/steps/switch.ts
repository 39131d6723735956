import { Fatal } from '#server/kernel/jobs/definition'
import { imagesOf, removableImages, tagsOf } from '../release-images.ts'
import type { Release, ReleaseService } from '../releases.ts'
import {
  type DeployContext,
  type DeployPayload,
  type DeployState,
  type DeployStep,
  targetOf,
} from '../work.ts'
import { hasWeb, instancesOfRelease } from '../processes.ts'
import { drain, routeTo } from '../serving.ts'
import { endRelease, replacedBy, superviseAll } from '../stack/ending.ts'
import { restorePrevious } from '../stop-first.ts'
import { removeWork } from './source.ts'

/** Gives the traffic to the new release; requests in flight end on the old one. */
export async function switchStep(context: DeployContext, step: DeployStep): Promise<void> {
  const { deployment_id, app_id } = step.payload
  const release = context.releases.find(step.state.release_id)!
  const instances = await instancesOfRelease(context.engine, release)
  const target = targetOf(instances, release.settings)
  if (
    hasWeb(release.settings)
      ? target.addresses.length === 0
      : !instances.some(({ state }) => state === 'running')
  )
    throw new Fatal(
      'exited',
      'The new release ended just before traffic was to go to it.',
      'Look at the log of the deployment, then deploy again.',
    )
  // A second try after a crash finds what the first one has made of it.
  if (!step.state.switched) {
    step.state.auto_deploy = context.apps.get(app_id).auto_deploy
    step.state.was_asleep = context.ports.isAsleep(app_id)
  }
  step.state.switched = true
  step.state.live_at = context.clock.iso()
  step.save()
  followNames(context, app_id, release)
  await context.routing.serve(app_id, target)
  context.advance(deployment_id, 'go_live', { live_at: step.state.live_at })
}

/** Services that somebody may start and stop: those that run to their end are none. */
const runningNames = (stack: readonly ReleaseService[]): string[] =>
  stack.filter(({ one_off }) => !one_off).map(({ name }) => name)

const NOTHING_SERVES =
  'The release was taken back soon after it went live, and nothing older serves in its place. Deploy again.'

/** Gives the app, and each public service of a stack, the names that a release needs. */
function followNames(context: DeployContext, app_id: string, { settings }: Release): void {
  context.ports.followWeb(app_id, hasWeb(settings))
  const { stack, main } = settings
  if (!stack) return
  const names = stack.filter(({ public_port }) => public_port !== null).map(({ name }) => name)
  context.ports.followServices(app_id, main, names)
}

/**
 * Says in the rows that what served before is live again, or that nothing is. Whatever becomes of the engine and the
 * edge afterwards, the reconciler then brings back the right release, and not the one that is taken back.
 * @returns the release that served before, and whether it sleeps.
 */
function giveBack(
  context: DeployContext,
  { deployment_id, app_id }: Pick<DeployPayload, 'deployment_id' | 'app_id'>,
  { previous, was_asleep }: DeployState,
): { before?: Release; sleeps: boolean } {
  const before = context.releases.find(previous?.release_id ?? '')
  if (!before) {
    if (context.apps.get(app_id).live_deployment_id === deployment_id)
      context.apps.transition(app_id, 'lose', { deployment_id, error: NOTHING_SERVES })
    context.apps.setLive(app_id, null, null)
    return { sleeps: false }
  }
  followNames(context, app_id, before)
  const sleeps = was_asleep === true
  if (sleeps) context.ports.sleepAgain(app_id)
  context.apps.setLive(app_id, previous!.deployment_id, before.id)
  return { before, sleeps }
}

/** Gives the traffic back to what served before. */
export async function undoSwitch(context: DeployContext, step: DeployStep): Promise<void> {
  const { state, payload } = step
  if (!state.switched) return
  const { before, sleeps } = giveBack(context, payload, state)
  await restorePrevious(context, step)
  const serving = await routeTo(context, payload.app_id, before)
  if (before && serving === 0 && !sleeps)
    context.apps.transition(payload.app_id, 'lose', {
      deployment_id: payload.deployment_id,
      error: NOTHING_SERVES,
    })
  state.switched = false
  context.logs.append(payload.deployment_id, 'switch', 'system', sayBack(serving, sleeps))
}

function sayBack(serving: number, sleeps: boolean): string {
  if (serving > 0) return 'Traffic went back to the previous release.'
  return sleeps
    ? 'The app sleeps again; the next request wakes the previous release.'
    : 'No earlier release is there to take the traffic.'
}

/**
 * Makes the new release the one that the engine keeps alive, and ends the old one and what nobody can roll
 * back to.
 */
export async function retireStep(context: DeployContext, step: DeployStep): Promise<void> {
  const { deployment_id, app_id } = step.payload
  const { release_id, previous } = step.state
  context.releases.markProven(release_id)
  const release = context.releases.find(release_id)!
  await superviseAll(context.engine, release, true)
  const old =
    previous?.release_id && previous.release_id !== release_id
      ? context.releases.find(previous.release_id)
      : undefined
  if (old) {
    const replaced = old.settings.stack ? replacedBy(old, release) : undefined
    await drain(context, old, step.signal, replaced)
    await endRelease(context.engine, old, undefined, replaced)
  }
  const { stack } = release.settings
  if (stack) {
    context.ports.services.keep(app_id, step.payload.project_id, runningNames(stack), true)
    context.ports.services.started(app_id)
  }
  void removeWork(context, deployment_id)
  await pruneImages(context, app_id, release_id)
}

/** Removes images of an app beyond those that can be rolled back to. */
export async function pruneImages(
  context: DeployContext,
  app_id: string,
  live_release_id: string,
): Promise<void> {
  const all = context.releases.withImages(app_id)
  for (const image_id of removableImages(context.releases.kept(app_id), all, new Set([live_release_id]))) {
    const users = all.filter((release) => imagesOf(release).includes(image_id))
    const tags = users.flatMap((release) => tagsOf(release, image_id))
    if (tags.length === 0) continue // Pulled images may be shared with others; the disk clean-up takes them.
    for (const tag of new Set(tags)) await context.engine.removeImage(tag)
    context.releases.markImageGone(image_id)
  }
}
