import { join } from 'node:path'
import { defineBackupJob } from './backup-job.ts'
import { createArchives } from './archives.ts'
import type { JobDefinition } from '#server/kernel/jobs/definition'
import type { AppsDomain } from '#server/apps/contract'
import type { Base } from '#server/platform/base'
import type { DeploymentsDomain } from '#server/deployments/contract'
import { PLATFORM } from '#server/kernel/access'
import { own } from '#server/kernel/own'
import { createRecovery } from './recovery.ts'
import type { Databases } from '#server/databases/assembly'
import type { StorageProviders } from '#server/storage-providers/service'
import { createBackupRepository } from './repository.ts'
import { defineRestoreJob } from './restore-job.ts'
import { createSchedules } from './schedules.ts'
import { createBackupService } from './service.ts'
import type { Targets } from './target.ts'
import { createDatabaseTarget, type DatabasePort } from './targets/database.ts'
import { createPlatformTarget } from './targets/platform.ts'
import { createVolumeTarget, type VolumePort } from './targets/volume.ts'
import type { Volumes } from '#server/volumes/service'
import { createVolumeFiles } from './volume-files.ts'
import { defineVerifyJob } from './verify-job.ts'

/** More than any installation has. */
const MANY = 100_000

export interface BackupNeeds {
  storage_providers: Pick<StorageProviders, 'open' | 'passphrase' | 'find' | 'default'>
  databases: DatabasePort & Pick<Databases, 'plug' | 'list'>
  volumes: VolumePort & Pick<Volumes, 'ownedBy'>
  deployments: Pick<DeploymentsDomain, 'enqueue' | 'holders'>
  apps: Pick<AppsDomain, 'find' | 'sources'>
  projects: { nameOf(id: string): string | undefined }
}

/** Backups, their restores, trials and schedules. */
export function createBackups(base: Base, use: BackupNeeds) {
  const { db, clock, events, jobs, audit, secrets, directories, version } = base
  const repository = createBackupRepository(db)
  const destinations = use.storage_providers
  const archives = createArchives({
    secrets,
    version,
    destinations: {
      open: (id) => destinations.open(id),
      passphrase: (id) => destinations.passphrase(id),
    },
    projectName: (id) => use.projects.nameOf(id),
  })
  const files = createVolumeFiles(base.engine)
  const all: Targets = {
    database: createDatabaseTarget(
      () => use.databases,
      (id) => use.apps.find(id)?.name,
    ),
    volume: createVolumeTarget(
      () => use.volumes,
      () => use.deployments.holders,
      files,
      (id) => use.apps.find(id)?.name,
    ),
    platform: createPlatformTarget({
      db,
      version,
      work_directory: join(directories.work, 'backups'),
      key_file: join(directories.keys, 'secret.key'),
    }),
  }
  const targets = () => all
  const service = createBackupService({
    ...{ db, clock, events, jobs, audit, repository, archives, targets },
    destinations: { find: (id) => destinations.find(id), default: () => destinations.default() },
  })
  const schedules = createSchedules({
    ...base,
    backups: repository,
    service,
    destinationExists: (id) => destinations.find(id) !== undefined,
  })
  const parts = { ...base, repository, archives, targets }
  const definitions: JobDefinition[] = [
    defineBackupJob({ ...parts, retain: schedules.retain }),
    defineRestoreJob(parts),
    defineVerifyJob(parts),
  ]
  use.databases.plug({
    final_backup: {
      plan: ({ id }, actor) => service.planFinal(actor, 'database', id).id,
      take: async (id, signal) => void (await service.takeFinal(id, signal)),
    },
  })
  const recovery = createRecovery({
    db,
    jobs,
    events,
    newestGood: service.newestGood,
    restore: (id, given) => service.restore(PLATFORM, id, given),
    resources: () => [
      { target: 'database', list: use.databases.list(PLATFORM, {}, { page: 1, per_page: MANY }).data },
    ],
    apps: () => use.apps.sources().filter(({ id }) => use.apps.find(id)?.status !== 'stopped'),
    deploy(id) {
      const app = use.apps.find(id)
      if (app) use.deployments.enqueue(app, 'manual', {}, PLATFORM)
    },
  })
  const GONE: Record<string, string> = {
    'app.deleted': 'app_id',
    'database.deleted': 'database_id',
    'volume.deleted': 'volume_id',
  }
  base.events.subscribe(({ type, payload }) => {
    const key = own(GONE, type)
    if (key !== undefined) schedules.targetRemoved(String(own(payload, key)))
  })
  /** What is of an app, or of volumes that went with it, is of its new project. Part of the move. */
  const appMoved = (app_id: string): void => {
    const project_id = use.apps.find(app_id)?.project_id
    if (project_id === undefined) return
    for (const id of [app_id, ...use.volumes.ownedBy(app_id)]) schedules.targetMoved(id, project_id)
  }
  /** What a process that ended during a backup left paused goes on; backups that go on see to theirs. */
  const resumePaused = async () => {
    if (repository.underWay().length === 0) await use.deployments.holders.resumeAll()
  }
  return {
    ...service,
    schedules,
    recovery,
    resumePaused,
    appMoved,
    definitions: [...definitions, recovery.definition],
  }
}
export type Backups = ReturnType<typeof createBackups>
