import { join } from 'node:path'
import type { FinalBackups } from './contract.ts'
import { defineBackupJob } from './backup-job.ts'
import { createArchives } from './archives.ts'
import type { JobDefinition } from '#server/kernel/jobs/definition'
import type { AppsDomain } from '#server/apps/contract'
import type { Base } from '#server/platform/base'
import type { DeploymentsDomain } from '#server/deployments/contract'
import { notFound } from '#server/kernel/errors'
import { RECEIVED_AT_ONCE, unpackDump } from './uploaded-dump.ts'
import { type Actor, PLATFORM } from '#server/kernel/access'
import { own } from '#server/kernel/own'
import { createUserPool } from '#server/kernel/user-pool'
import { createRecovery } from './recovery.ts'
import type { Databases } from '#server/databases/assembly'
import type { StorageProviders } from '#server/storage-providers/service'
import { createBackupRepository } from './repository.ts'
import { defineRestoreJob } from './restore-job.ts'
import { createDailyCopies } from './daily-copies.ts'
import { createRoom } from './room.ts'
import { createSchedules } from './schedules.ts'
import { inspectApart } from './targets/inspect-apart.ts'
import { createBackupService } from './service.ts'
import { createSlowStreams } from './slow-streams.ts'
import { createAdmission } from './admission.ts'
import { createLeftArchives } from './left-archives.ts'
import { leftBehind, type Spare } from './left-behind.ts'
import { createLogObjects } from './point-in-time/objects.ts'
import { createLogArchiveRepository } from './point-in-time/repository.ts'
import { createPointInTime } from './point-in-time/service.ts'
import type { Restore, RestoreDatabase } from './schema.ts'
import type { Targets } from './target.ts'
import { createAppTarget } from './targets/app.ts'
import { createAppParts } from './targets/app-parts.ts'
import type { AppPorts } from './targets/app-ports.ts'
import { admitRestore, createDatabaseTarget, type DatabasePort, volumeOf } from './targets/database.ts'
import { createPlatformTarget } from './targets/platform.ts'
import { createVolumeTarget, type VolumePort } from './targets/volume.ts'
import type { Projects } from '#server/projects/service'
import type { SettingsService } from '#server/settings/service'
import type { Volumes } from '#server/volumes/service'
import { createVolumeFiles } from './volume-files.ts'
import { defineVerifyJob } from './verify-job.ts'

/** More than any installation has. */
const MANY = 100_000

export interface BackupNeeds {
  storage_providers: Pick<StorageProviders, 'open' | 'passphrase' | 'find' | 'default'>
  databases: DatabasePort &
    AppPorts['databases'] &
    Pick<
      Databases,
      | 'plug'
      | 'list'
      | 'instance'
      | 'requireRestorable'
      | 'forgetVanished'
      | 'archived'
      | 'output'
      | 'ask'
      | 'spareSpecOf'
      | 'measure'
    >
  env: AppPorts['env']
  volumes: VolumePort & AppPorts['volumes'] & Pick<Volumes, 'measure' | 'ownedBy' | 'list'>
  deployments: AppPorts['deployments'] &
    Pick<DeploymentsDomain, 'ended' | 'enqueueSource' | 'hasSource' | 'keepRunning'>
  domains: AppPorts['domains']
  cron: AppPorts['cron']
  apps: AppPorts['apps'] & Pick<AppsDomain, 'sources' | 'shares'>
  projects: Pick<
    Projects,
    'nameOf' | 'quota' | 'requireQuota' | 'requireShare' | 'requireStorage' | 'shareBefore'
  >
  settings: Pick<SettingsService, 'server'>
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
  const left = createLeftArchives({ repository, archives, log: base.log })
  const files = createVolumeFiles(base.engine)
  const database = createDatabaseTarget(
    () => use.databases,
    (id) => use.apps.find(id)?.name,
  )
  const all: Targets = {
    database,
    app: createAppTarget(() => use, files, database),
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
  const log_repository = createLogArchiveRepository(db)
  const requireRoom = createRoom(
    (project_id) => repository.bytesOf(project_id) + log_repository.bytesOf(project_id),
    (project_id) => use.projects.quota(project_id, 'backup_bytes'),
  )
  const service = createBackupService({
    ...{ db, clock, events, jobs, audit, repository, archives, left, targets, requireRoom },
    destinations: { find: (id) => destinations.find(id), default: () => destinations.default() },
    isProject: (id) => use.projects.nameOf(id) !== undefined,
  })
  const daily_copies = createDailyCopies({
    ...{ db, clock, log: base.log },
    directory: directories.backups,
    inspect: (path) => inspectApart(path),
  })
  const schedules = createSchedules({
    ...base,
    backups: repository,
    requireRoom,
    service,
  })
  const streaming = createSlowStreams()
  const parts = { ...base, repository, archives, streaming, targets }
  const point_in_time = createPointInTime({
    ...base,
    repository: log_repository,
    streaming,
    objects: createLogObjects({ secrets, open: (id) => destinations.open(id) }),
    requireRoom,
    databases: use.databases,
    destinations: { find: (id) => destinations.find(id), default: () => destinations.default() },
    halves: {
      ...database.restore!,
      admit: (request) => admitRestore(use.databases, request),
      volumeOf,
    },
  })
  const definitions: JobDefinition[] = [
    ...point_in_time.definitions,
    defineBackupJob({ ...parts, requireRoom, discard: left.discard, retain: schedules.retain }),
    defineRestoreJob({
      ...parts,
      async requireStorage(project_id) {
        if (use.projects.quota(project_id, 'storage_bytes') === undefined) return
        try {
          await use.databases.measure(await use.volumes.measure())
        } catch (error) {
          // What was measured last is a minute old; the engine may be asked for it by somebody else just now.
          base.log.warn('What a project holds could not be measured', { project: project_id, error })
        }
        use.projects.requireStorage(project_id)
      },
    }),
    defineVerifyJob(parts),
  ]
  const final: FinalBackups = {
    plan: (actor, target, id, { volumes = false } = {}) =>
      // What vanished cannot be copied any more, and must not keep an app from being deleted.
      service.planFinal(actor, target, id, ['databases', volumes ? 'lost_volumes' : 'volumes']).id,
    take: async (id, signal) => void (await service.takeFinal(id, signal)),
    drop: service.dropFinal,
  }
  use.databases.plug({
    final_backup: { ...final, plan: ({ id }, actor) => final.plan(actor, 'database', id) },
    log_archive: point_in_time,
  })
  const app_parts = createAppParts(() => use)
  const recovery = createRecovery({
    db,
    jobs,
    events,
    newestGood: service.newestGood,
    newestAround() {
      const of_apps = use.apps
        .sources()
        .flatMap((app) => use.apps.find(app.id) ?? [])
        .flatMap((app) => {
          const backup = service.newestGood('app', app.id)
          return backup ? app_parts.ids(app).map((id) => [id, backup] as const) : []
        })
      // Of two apps with the same part the newer backup counts: what is put in later stays.
      return new Map(of_apps.toSorted(([, a], [, b]) => a.created_at.localeCompare(b.created_at)))
    },
    restore: (id, given) => service.restore(PLATFORM, id, given),
    async makeWay(target, id) {
      if (target === 'database') await use.databases.forgetVanished(id)
    },
    resources: () => [
      { target: 'database', list: use.databases.list(PLATFORM, {}, { page: 1, per_page: MANY }).data },
      { target: 'volume', list: use.volumes.list(PLATFORM, { page: 1, per_page: MANY }).data },
    ],
    apps: () =>
      use.apps
        .sources()
        .filter((app) => use.apps.find(app.id)?.status !== 'stopped' && use.deployments.hasSource(app)),
    deploy(id) {
      const app = use.apps.find(id)
      return app && use.deployments.enqueueSource(app, 'manual', {}, PLATFORM).id
    },
    deployed: (id) => use.deployments.ended(id),
    clock,
    log: base.log,
  })
  /** After these a server may have a log that is to be archived, which need not wait for a minute to pass. */
  const LOGGED = new Set(['database.running', 'database.updated', 'database.replaced'])
  const GONE: Record<string, string> = {
    'app.deleted': 'app_id',
    'database.deleted': 'database_id',
    'volume.deleted': 'volume_id',
  }
  base.events.subscribe(({ type, payload }) => {
    if (LOGGED.has(type)) point_in_time.touch(String(own(payload, 'database_id')))
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
  const spares: Spare[] = [
    { all: () => use.volumes.spareData(), remove: (data_id) => use.volumes.removeData(data_id) },
    {
      all: () => use.databases.spares.volumes(),
      remove: (volume_id) => use.databases.spares.remove(volume_id),
    },
  ]
  use.deployments.keepRunning(leftBehind(db, base.log, spares))
  const receiving = createUserPool(RECEIVED_AT_ONCE)
  /** A dump that somebody sends, in the place of what a database holds. */
  const restoreUpload = async (actor: Actor, id: string, source: AsyncIterable<Uint8Array>) => {
    const row = use.databases.find(id)
    if (!row) throw notFound('database')
    const { label, dump } = use.databases.engineNamed(row.engine)!
    // Before gigabytes are sent for nothing.
    use.databases.requireRestorable(id)
    const received = await receiving.run(row.project_id, () =>
      service.receive(actor, id, unpackDump(source, { label, ...dump.uploads })),
    )
    return service.restore(actor, received.id, { mode: 'in_place' }, id)
  }
  /** From one of its backups, or to a moment. */
  const restoreDatabase = (actor: Actor, id: string, { backup_id, at, ...how }: RestoreDatabase): Restore =>
    at === undefined
      ? service.restore(actor, backup_id!, how, id)
      : point_in_time.restore(actor, id, { ...how, at })
  return {
    ...service,
    countAt: (destination_id: string) =>
      service.countAt(destination_id) + point_in_time.countAt(destination_id),
    point_in_time,
    requireAdmitted: createAdmission({
      requirePossible: service.requirePossible,
      archives,
      ports: () => use,
    }),
    restoreDatabase,
    restoreUpload,
    final,
    schedules,
    daily_copies,
    removeLeft: left.pass,
    recovery,
    resumePaused,
    appMoved,
    definitions: [...definitions, recovery.definition],
  }
}
export type Backups = ReturnType<typeof createBackups>
