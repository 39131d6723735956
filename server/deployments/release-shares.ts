import { type Share, sumOf } from '#server/kernel/shares'
import { processesOf } from './processes.ts'
import type { Release, ReleaseSettings } from './releases.ts'
import { requestOf } from './repository.ts'
import type { DeployContext, DeployStep } from './work.ts'

/**
 * What all instances of a release may use. More than the configuration of its app tells: a Procfile and a compose
 * file name processes that nobody asked for by the API.
 */
export const shareOfRelease = ({ settings }: Pick<Release, 'settings'>): Share => sharesOfProcesses(settings)

/** The same of a release that is about to be made. */
export const sharesOfProcesses = (settings: ReleaseSettings): Share =>
  sumOf(
    processesOf(settings).map(({ replicas, limits }) => ({
      memory_bytes: replicas * limits.memory_bytes,
      cpus: replicas * limits.cpus,
    })),
  )

/** What each release of an app may use that serves, or that has room and is about to. */
export function releaseShares(
  { releases, deployments }: Pick<DeployContext, 'releases' | 'deployments'>,
  { id, live_release_id }: { id: string; live_release_id: string | null },
): Share[] {
  const admitted = deployments.withStatus(id, ['releasing']).map(({ release_id }) => release_id)
  return [live_release_id, ...admitted].flatMap((release_id) => {
    const release = release_id ? releases.find(release_id) : undefined
    return release ? [shareOfRelease(release)] : []
  })
}

/**
 * Throws 409 when what was built may use more than the quotas of its project have room for: only now is known all
 * that it runs, and nothing of it does yet. What is live was counted when it came; restarting it must work.
 */
export function requireRoom(context: DeployContext, { payload, state }: DeployStep): void {
  const { deployment_id, app_id } = payload
  const row = context.deployments.find(deployment_id)!
  if (row.trigger === 'restart') return
  const share = shareOfRelease(context.releases.find(state.release_id)!)
  if (requestOf(row).admitted) context.apps.requireAdmitted(app_id, share)
  else context.apps.requireShare(app_id, share)
}
