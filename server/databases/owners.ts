import type { Jobs } from '#server/kernel/jobs/jobs'
import { EngineError, type EngineEvent } from '#server/platform/engine/engine'
import { networkOf } from '#server/platform/engine/network-name'
import { MAIN_PROCESS } from '#server/platform/engine/workload'
import type { WorkloadOwners } from '#server/platform/engine/workload-reconciler'
import type { DatabaseContext } from './context.ts'
import { startRequest } from './lifecycle.ts'
import { type Live, lostVolume } from './live.ts'
import type { Spares } from './spares.ts'
import { STOP_GRACE_S, workloadOf } from './workload.ts'

export const UNDER_WAY = new Set(['queued', 'running', 'undoing'])

/** Databases as owners of workloads: what the reconciler keeps running, and what follows from how they fare. */
export function databaseOwners(
  { repository, get, change, advance, note }: DatabaseContext,
  jobs: Pick<Jobs, 'findBySubject' | 'enqueue'>,
  { live, spares }: { live: Live; spares: Spares },
): WorkloadOwners {
  return {
    kind: 'database',
    desired: () =>
      repository
        .all()
        .filter(({ status, image_id }) => status === 'running' && image_id !== null)
        .map(({ id, project_id, volume_id }) => ({ id, project_id, release_id: volume_id })),
    processes: () => [{ process: MAIN_PROCESS, replicas: 1 }],
    workload: (owner) => workloadOf(live.specOf(get(owner.id))),
    networks({ id }) {
      const row = get(id)
      return { [networkOf(row)]: { project: row.project_id } }
    },
    // The restore of an app works on its databases as well, in a job that is the app's.
    busy: (id) =>
      UNDER_WAY.has(jobs.findBySubject(id)?.status ?? '') || repository.find(id)?.status === 'restoring',
    releasesAtWork: () => new Set(spares.volumes()),
    release(volume_id) {
      const row = repository.findByVolume(volume_id)
      return row && { owner_id: row.id, stop_grace_s: STOP_GRACE_S }
    },
    restoring: (owner) => note(get(owner.id), 'database.restored'),
    failed(owner, error) {
      if (!(error instanceof EngineError)) return
      // A start fetches it again, or says why it cannot.
      if (error.code === 'image_not_found')
        jobs.enqueue(startRequest(owner, { restart: false, fresh: false }))
      // Trying again does not bring data back.
      if (error.code !== 'volume_missing') return
      const { message, hint } = lostVolume(get(owner.id))
      advance(owner.id, 'fail', { last_error: `${message} ${hint}` })
    },
    exited(id, event: EngineEvent) {
      const row = repository.find(id)
      if (row?.status !== 'running') return
      // A trial restore or an upgrade has a server of its own beside the one that serves.
      if (event.release_id !== undefined && event.release_id !== row.volume_id) return
      const killed = event.kind === 'oom'
      change(id, {
        last_error: killed
          ? 'The server was killed for using more memory than its limit, and was started again. Raise the limit.'
          : `The server ended${event.exit_code === undefined ? '' : ` with exit code ${event.exit_code}`}, and was started again. Look at its log.`,
      })
      note(row, killed ? 'database.oom_killed' : 'database.exited', { exit_code: event.exit_code ?? null })
    },
  }
}
