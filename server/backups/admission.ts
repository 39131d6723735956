import type { AppsDomain } from '#server/apps/contract'
import type { Databases } from '#server/databases/assembly'
import { type Share, sumOf } from '#server/kernel/shares'
import type { Projects } from '#server/projects/service'
import type { Archives } from './archives.ts'
import type { BackupRepository } from './repository.ts'
import type { RestoreBackup } from './schema.ts'
import { copyIn } from './targets/app-copy.ts'

export interface AdmissionOptions {
  repository: Pick<BackupRepository, 'find'>
  archives: Pick<Archives, 'read'>
  ports(): {
    apps: { shares: Pick<AppsDomain['shares'], 'moreWith'> }
    databases: Pick<Databases, 'inProject' | 'requireRestorable'>
    projects: Pick<Projects, 'requireQuota' | 'requireShare' | 'share'>
  }
}
const PARTS = { volumes: 'volume', databases: 'database' } as const

/**
 * Throws 409 at the request for what a restore of a whole app would fail at in its job: quotas that its parts do
 * not fit in, and databases that cannot be replaced now. What the parts are stands at the beginning of the archive.
 */
export function createAdmission({ repository, archives, ports }: AdmissionOptions) {
  return async (id: string, { mode }: Pick<RestoreBackup, 'mode'>): Promise<void> => {
    const row = repository.find(id)
    if (row?.target !== 'app' || row.status !== 'succeeded') return
    const { project_id } = row
    const { apps, databases, projects } = ports()
    // A destination that is away for a moment is waited for by the job, which also tells of a damaged archive.
    const copy = await copyIn(() => archives.read(row)).catch(() => undefined)
    if (!copy) return
    const requireShare = (extra: Share) =>
      projects.requireShare(project_id, projects.share(project_id), extra)
    const { configuration } = copy.app
    const present = databases.inProject(project_id)
    if (mode === 'in_place') {
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
