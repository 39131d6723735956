import { Fatal } from '#server/kernel/jobs/definition'
import type { Release } from './releases.ts'
import { superviseAll } from './stack/ending.ts'
import { contestedServices } from './stack/start.ts'
import { ensureProcesses } from './release-workload.ts'
import { NOTHING } from './routing.ts'
import { drain, routeTo } from './serving.ts'
import type { DeployContext, Workshop } from './work.ts'

/** Volumes that both releases write to and only one may. */
function contested(before: Release | undefined, release: Release): string[] {
  const taken = before?.settings.mounts?.exclusive ?? []
  return (release.settings.mounts?.exclusive ?? []).filter((id) => taken.includes(id))
}

const previousOf = (shop: Workshop, { state }: DeployContext): Release | undefined =>
  state.previous?.release_id ? shop.releases.find(state.previous.release_id) : undefined

/** Whether the release can start only after the one that serves has ended; said in the log before it happens. */
export function announceStopFirst(shop: Workshop, context: DeployContext): void {
  const release = shop.releases.find(context.state.release_id)!
  const before = previousOf(shop, context)
  for (const name of contestedServices(before, release).keys())
    shop.logs.append(
      context.payload.deployment_id,
      'release',
      'system',
      `The service ${name} holds a volume: its old instance ends before the new one starts, and it does not answer in between.`,
    )
  if (contested(before, release).length === 0) return
  shop.logs.append(
    context.payload.deployment_id,
    'release',
    'system',
    'Only one instance may write to a volume of this app. The old instance ends before the new one starts; the app does not answer in between. A volume with access "shared" avoids this.',
  )
}

/** Fails while the old release still serves when a volume of the new one is gone. */
export async function requireVolumes(shop: Workshop, release: Release): Promise<void> {
  for (const { volume_id, path } of shop.releases.volumes(release))
    if (!(await shop.engine.findVolume(volume_id)))
      throw new Fatal(
        'volume_missing',
        `The volume ${volume_id}, mounted at ${path}, is no longer on the server.`,
        'Restore it from a backup, or remove its mount and deploy again. An empty one is not put in its place.',
      )
}

/** Ends the release that serves where it holds a volume that the new one needs for itself. */
export async function stopPrevious(shop: Workshop, context: DeployContext): Promise<void> {
  const release = shop.releases.find(context.state.release_id)!
  const previous = previousOf(shop, context)
  if (!previous || previous.id === release.id || contested(previous, release).length === 0) return
  const instances = await shop.engine.instances({ release_id: previous.id })
  if (instances.length === 0) return
  // Before anything is stopped, so that whatever happens next the undo knows of it.
  context.state.stopped_previous = true
  context.save()
  await shop.routing.serve(release.app_id, NOTHING)
  await drain(shop, previous, context.signal)
  await shop.engine.removeRelease(previous.id, previous.settings.stop_grace_s)
}

/** Brings the release back that was ended for one that did not last, and gives it the traffic. */
export async function restorePrevious(shop: Workshop, context: DeployContext): Promise<void> {
  const { state, payload } = context
  const previous = previousOf(shop, context)
  if (!state.stopped_previous || !previous) return
  await shop.engine.removeRelease(state.release_id, 0)
  await ensureProcesses(shop, previous, shop.ports.app(payload.app_id), new AbortController().signal)
  await superviseAll(shop.engine, previous, true)
  await routeTo(shop, payload.app_id, previous)
  state.stopped_previous = false
  shop.logs.append(payload.deployment_id, 'release', 'system', 'The previous release was started again.')
}
