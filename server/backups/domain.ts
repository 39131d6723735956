import { join } from 'node:path'
import { defineBackupJob } from './backup-job.ts'
import { createArchives } from './archives.ts'
import type { JobDefinition } from '#server/kernel/jobs/definition'
import type { Base } from '#server/platform/base'
import type { StorageProviders } from '#server/storage-providers/service'
import { createBackupRepository } from './repository.ts'
import { defineRestoreJob } from './restore-job.ts'
import { createSchedules } from './schedules.ts'
import { createBackupService } from './service.ts'
import type { Targets } from './target.ts'
import { createPlatformTarget } from './targets/platform.ts'
import { defineVerifyJob } from './verify-job.ts'

export interface BackupNeeds {
  storage_providers: Pick<StorageProviders, 'open' | 'passphrase' | 'find' | 'default'>
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
  const all: Targets = {
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
  return { ...service, schedules, definitions }
}
export type Backups = ReturnType<typeof createBackups>
