import { Fatal, Later } from '#server/kernel/jobs/definition'
import type { Release } from './releases.ts'
import { superviseAll } from './stack/ending.ts'
import { contestedServices } from './stack/start.ts'
import { ensureProcesses } from './release-workload.ts'
import { NOTHING } from './routing.ts'
import { drain, routeTo, untilAlone } from './serving.ts'
import type { DeployStep, DeployContext } from './work.ts'

/** Volumes that both releases write to and only one may. */
function contested(before: Release | undefined, release: Release): string[] {
  const taken = before?.settings.mounts?.exclusive ?? []
  return (release.settings.mounts?.exclusive ?? []).filter((id) => taken.includes(id))
}

const previousOf = (context: DeployContext, { state }: DeployStep): Release | undefined =>
  state.previous?.release_id ? context.releases.find(state.previous.release_id) : undefined

/** Whether the release can start only after the one that serves has ended; said in the log before it happens. */
export function announceStopFirst(context: DeployContext, step: DeployStep): void {
  const release = context.releases.find(step.state.release_id)!
  const before = previousOf(context, step)
  for (const name of contestedServices(before, release).keys())
    context.logs.append(
      step.payload.deployment_id,
      'release',
      'system',
      `The service ${name} holds a volume: its old instance ends before the new one starts, and it does not answer in between.`,
    )
  if (contested(before, release).length === 0) return
  context.logs.append(
    step.payload.deployment_id,
    'release',
    'system',
    'Only one instance may write to a volume of this app. The old instance ends before the new one starts; the app does not answer in between. A volume with access "shared" avoids this.',
  )
}

/**
 * Fails while the old release still serves when a volume of the new one is gone, or is of another
 * project: one that an app left behind when it moved is not for those who may go back to a release
 * of then.
 */
export async function requireVolumes(
  context: DeployContext,
  release: Release,
  { project_id }: { project_id: string },
): Promise<void> {
  for (const { volume_id, path } of release.settings.mounts?.volumes ?? [])
    if ((context.ports.projectOfVolume(volume_id) ?? project_id) !== project_id)
      throw new Fatal(
        'volume_missing',
        `The volume that this release mounts at ${path} stayed in another project when the app moved.`,
        'Deploy the app instead of going back to that release.',
      )
  for (const { volume_id, path } of context.releases.volumes(release))
    if (!(await context.engine.findVolume(volume_id)))
      throw new Fatal(
        'volume_missing',
        `The volume ${volume_id}, mounted at ${path}, is no longer on the server.`,
        'Restore it from a backup, or remove its mount and deploy again. An empty one is not put in its place.',
      )
}

const PAUSE_MS = 1000
/**
 * Begins the step anew while the data of a volume are replaced that the app did not mount when that
 * began: what starts meanwhile would have those of before, and lose what it writes to them.
 */
export function awaitData(
  context: DeployContext,
  { payload, state, save }: DeployStep,
  release: Release,
): void {
  const { deployment_id, app_id } = payload
  const volumes = release.settings.mounts?.volumes ?? []
  if (!volumes.some(({ volume_id }) => context.ports.hasToWaitForData(volume_id, app_id))) return
  if (!state.waits_for_data) {
    const text = 'The data of a volume are being restored; the release starts once they are there.'
    context.logs.append(deployment_id, 'release', 'system', text)
    state.waits_for_data = true
    save()
  }
  throw new Later(PAUSE_MS)
}

/** Ends the release that serves where it holds a volume that the new one needs for itself. */
export async function stopPrevious(context: DeployContext, step: DeployStep): Promise<void> {
  const release = context.releases.find(step.state.release_id)!
  const previous = previousOf(context, step)
  if (!previous || previous.id === release.id || contested(previous, release).length === 0) return
  await untilAlone(context, release.app_id)
  const instances = await context.engine.instances({ release_id: previous.id })
  if (instances.length === 0) return
  // Before anything is stopped, so that whatever happens next the undo knows of it.
  step.state.stopped_previous = true
  step.save()
  await context.routing.serve(release.app_id, NOTHING)
  await drain(context, previous, step.signal)
  await context.engine.removeRelease(previous.id, previous.settings.stop_grace_s)
}

/** Brings the release back that was ended for one that did not last, and gives it the traffic. */
export async function restorePrevious(context: DeployContext, step: DeployStep): Promise<void> {
  const { state, payload } = step
  const previous = previousOf(context, step)
  if (!state.stopped_previous || !previous) return
  await context.engine.removeRelease(state.release_id, 0)
  await ensureProcesses(context, previous, context.apps.get(payload.app_id), new AbortController().signal)
  await superviseAll(context.engine, previous, true)
  await routeTo(context, payload.app_id, previous)
  state.stopped_previous = false
  context.logs.append(payload.deployment_id, 'release', 'system', 'The previous release was started again.')
}
