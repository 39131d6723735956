import type { AppsDomain } from '#server/apps/contract'
import type { Databases } from '#server/databases/assembly'
import { type Share, sumOf } from '#server/kernel/shares'
import type { Projects } from '#server/projects/service'
import type { Volumes } from '#server/volumes/service'
import type { Archives } from './archives.ts'
import type { BackupRow } from './repository.ts'
import type { RestoreBackup } from './schema.ts'
import { type AppCopy, copyIn, withinProject } from './targets/app-copy.ts'

export interface AdmissionOptions {
  /** Throws what the rows alone forbid; answers the backup, and the project that it is restored into. */
  requirePossible(id: string, given: RestoreBackup): { row: BackupRow; project_id: string }
  archives: Pick<Archives, 'read'>
  ports(): {
    apps: { shares: Pick<AppsDomain['shares'], 'moreWith'> }
    databases: Pick<Databases, 'inProject' | 'requireRestorable'>
    projects: Pick<Projects, 'requireQuota' | 'requireShare' | 'shareBefore'>
    volumes: Pick<Volumes, 'find'>
  }
}
/** How long a request waits for the beginning of an archive. */
export const PATIENCE_MS = 5000
const PARTS = { volumes: 'volume', databases: 'database' } as const

/** What an archive says of its app; undefined where its destination does not tell that in time. */
async function soonIn(archives: Pick<Archives, 'read'>, row: BackupRow): Promise<AppCopy | undefined> {
  const signal = AbortSignal.timeout(PATIENCE_MS)
  // Not every destination can be interrupted while it is connected to.
  const late = new Promise<undefined>((resolve) => {
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  return Promise.race([late, copyIn(() => archives.read(row, signal)).catch(() => undefined)])
}

/**
 * Throws 409 at the request for what a restore of a whole app would fail at in its job: quotas that its parts do
 * not fit in, and databases that cannot be replaced now. What the parts are stands at the beginning of the archive.
 */
export function createAdmission({ requirePossible, archives, ports }: AdmissionOptions) {
  return async (id: string, given: RestoreBackup): Promise<void> => {
    const { row, project_id } = requirePossible(id, given)
    if (row.target !== 'app') return
    const { apps, databases, projects, volumes } = ports()
    if (given.mode === 'new') projects.requireQuota(project_id, 'app')
    // A destination that is away for a moment is waited for by the job, which also tells of a damaged archive.
    const found = await soonIn(archives, row)
    if (!found) return
    const { copy } = withinProject(found, project_id, (volume_id) => volumes.find(volume_id)?.project_id)
    const requireShare = (extra: Share) =>
      projects.requireShare(project_id, projects.shareBefore(project_id), extra)
    const { configuration } = copy.app
    const present = databases.inProject(project_id)
    if (given.mode === 'in_place') {
      for (const { name } of copy.databases) {
        const found = present.find((one) => one.name === name)
        if (found) databases.requireRestorable(found.id)
      }
      return requireShare(apps.shares.moreWith(configuration, row.target_id!))
    }
    for (const part of ['volumes', 'databases'] as const)
      if (copy[part].length > 0) projects.requireQuota(project_id, PARTS[part], copy[part].length)
    requireShare(sumOf([...copy.databases, apps.shares.moreWith(configuration)]))
  }
}
