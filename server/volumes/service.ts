import type { FinalBackups } from '#server/backups/contract'
import { type Actor, PLATFORM, projectRole, visibleProjects } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict, notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import type { Jobs } from '#server/kernel/jobs/jobs'
import type { Log } from '#server/kernel/log'
import { limits, paged } from '#server/kernel/schemas'
import type { Secrets } from '#server/kernel/secrets'
import { wantedValues } from '#server/kernel/page'
import { askingEngine } from '#server/platform/engine/asking'
import { type Engine, EngineError } from '#server/platform/engine/engine'
import { type VolumeEventName, volumeMachine } from './machine.ts'
import { DELETE_KIND, deletionJob, type VolumeDeletion } from './deletion.ts'
import { createVolumeData, dataOf } from './data.ts'
import { createPreviewMounts } from './preview-mounts.ts'
import { createMounts, type MountedApp, type StackApp, type StackMount } from './mounts.ts'
import { createMeasuring } from './measuring.ts'
import { createMoving } from './moving.ts'
import { createVolumeRepository, type MountRow, type VolumeRow } from './repository.ts'
import type { NewVolume, Volume, VolumeQuery } from './schema.ts'

export interface VolumeOptions {
  db: Db
  clock: Clock
  log: Log
  events: Events
  audit: AuditTrail
  secrets: Secrets
  engine: Engine
  jobs: Jobs
  ports: {
    /** Ids of the apps of its project whose live release has it. */
    holders(volume: { id: string; project_id: string }): string[]
    /** Ids of the volumes that the live release of an app has. */
    held(app_id: string): string[]
    /** Last copies of volumes that are deleted. */
    final(): FinalBackups
    app(id: string): MountedApp | undefined
    /** What the next release of an app runs. */
    processes(app_id: string): { name: string; replicas: number }[]
    /** Throws 409 where the app is pinned to a server that has no volumes. */
    requireAtHome(app_id: string): void
    /** Tells the timeline of an app that its mounts changed. */
    appChanged(app_id: string, actor: Actor): void
    /** Throws ENGINE_UNAVAILABLE when the engine does not answer. */
    requireEngine(): void
    /** Throws 409 when the project may not have one more volume, or so many. */
    requireQuota(project_id: string, count?: number): void
  }
}

const held = () =>
  conflict('An instance still holds the volume. Deploy or stop the app that mounted it, then try again.')

/** Volumes of projects and what apps mount. */
export function createVolumes(options: VolumeOptions) {
  const { db, clock, events, audit, engine, jobs, ports, log } = options
  const repository = createVolumeRepository(db)
  const mounts = createMounts({ ...options, repository })

  const get = (id: string): VolumeRow => {
    const row = repository.find(id)
    if (!row) throw notFound('volume')
    return row
  }
  const view = (row: VolumeRow, all: readonly MountRow[]): Volume => ({
    ...row,
    mounts: all
      .filter((mount) => mount.volume_id === row.id)
      .map(({ id, app_id, path, read_only }) => ({
        id,
        app_id,
        app_name: ports.app(app_id)?.name ?? app_id,
        path,
        read_only: read_only === 1,
      })),
  })
  const viewOne = (id: string) => view(get(id), repository.mountsOfVolumes([id]))
  const note = (row: VolumeRow, type: string, payload: Record<string, unknown> = {}, actor?: Actor) =>
    events.append({
      type,
      project_id: row.project_id,
      actor_id: actor?.user_id || null,
      payload: { volume_id: row.id, name: row.name, ...payload },
    })
  const record = (actor: Actor, action: string, row: VolumeRow, change: object) =>
    audit.record(actor, {
      action: `volume.${action}`,
      resource_type: 'volume',
      resource_id: row.id,
      project_id: row.project_id,
      ...change,
    })
  const audited = ({ name, access, size_bytes }: VolumeRow) => ({ name, access, size_bytes })

  /** Moves the status by an event of the machine and tells subscribers when it changed. */
  const transition = (id: string, event: VolumeEventName): void =>
    db.tx(() => {
      const row = get(id)
      const next = volumeMachine.next(row.status, event)
      if (next === row.status) return
      if (!repository.setStatus(id, row.status, next, clock.iso()))
        throw conflict('The volume has changed meanwhile. Try again.')
      note(row, `volume.${next}`, { from: row.status })
    })

  /** Makes what was asked for on the engine; a volume that was ready once is never made again. */
  const make = async (row: VolumeRow): Promise<void> => {
    await engine.ensureVolume(dataOf(row), { volume: row.id })
    db.tx(() => {
      repository.setUsage(row.id, 0, clock.iso())
      transition(row.id, 'make')
    })
  }
  /**
   * Removes the data, then the row: after a crash in between the row says what is left to do. After
   * a failure the volume is what it was, or still to be deleted where it is tried again.
   */
  const destroy = async (id: string, { is_retried = false } = {}): Promise<void> => {
    try {
      const { previous_data_id, ...row } = get(id)
      await engine.removeVolume(dataOf(row))
      if (previous_data_id !== null) await engine.removeVolume(previous_data_id)
    } catch (error) {
      if (!is_retried) transition(id, 'keep')
      if (error instanceof EngineError && error.code === 'conflict') throw held()
      throw error
    }
    db.tx(() => {
      const row = repository.find(id)
      if (!row) return
      repository.delete(id)
      note(row, 'volume.deleted')
    })
  }

  const isAtWork = (id: string): boolean => {
    const job = jobs.findBySubject(id)
    return job?.kind === DELETE_KIND && ['queued', 'running', 'undoing'].includes(job.status)
  }
  jobs.define(
    deletionJob({
      take: (backup_id, signal) => ports.final().take(backup_id, signal),
      drop: (backup_id, error) => ports.final().drop(backup_id, error),
      // A process that was killed may have removed the row, and not have noted the end of the step.
      destroy: async (id) => {
        if (repository.find(id)) await destroy(id)
      },
      keep: (id, error) => {
        if (repository.find(id)?.status !== 'deleting') return
        transition(id, 'keep')
        note(get(id), 'volume.delete_failed', { error })
      },
    }),
  )
  const measure = createMeasuring({
    ...{ db, clock, engine, log, repository, make, transition, note },
    isLeft: (row) => !isAtWork(row.id) && ports.holders(row).length === 0,
    destroy: (id) => destroy(id, { is_retried: true }),
  })
  const data = createVolumeData({ db, clock, engine, repository, transition, note })
  const newRow = (
    actor: Actor,
    project_id: string,
    body: Pick<NewVolume, 'name' | 'access'> & { size_bytes?: number | null | undefined },
  ): VolumeRow => {
    const at = clock.iso()
    return {
      id: newId('vol'),
      project_id,
      name: body.name,
      status: 'creating',
      access: body.access,
      size_bytes: body.size_bytes ?? null,
      used_bytes: null,
      measured_at: null,
      data_id: null,
      previous_data_id: null,
      filling: 0,
      touched: 0,
      created_by: actor.user_id || null,
      created_at: at,
      updated_at: at,
    }
  }
  /** Row, event and audit line; 409 for a name that is taken. */
  const insert = (actor: Actor, row: VolumeRow): VolumeRow =>
    db.tx(() => {
      if (repository.hasName(row.project_id, row.name))
        throw conflict(`The project has a volume named ${row.name} already. Choose another name.`)
      ports.requireQuota(row.project_id)
      repository.insert(row)
      note(row, 'volume.created', {}, actor)
      record(actor, 'create', row, { after: audited(row) })
      return row
    })

  /** A volume that the platform makes for an app, in the current transaction. */
  const madeFor = (app: Pick<MountedApp, 'project_id'>, body: Parameters<typeof newRow>[2]): VolumeRow => {
    ports.requireQuota(app.project_id)
    const row: VolumeRow = { ...newRow(PLATFORM, app.project_id, body), touched: 1 }
    repository.insert(row)
    note(row, 'volume.created')
    return row
  }
  const preview_mounts = createPreviewMounts({
    ...{ db, clock, secrets: options.secrets, repository, make },
    made: (app, { name, access, size_bytes }) =>
      madeFor(app, { name: mounts.newVolumeName(app, name), access, size_bytes }),
    drop: (id) => transition(id, 'delete'),
  })

  return {
    ...mounts,
    ...createMoving({ clock, repository, ports, ownedBy: (id) => mounts.ownedBy(id) }),
    ...preview_mounts,
    ...data,
    /** A volume that a restore is about to fill; nobody can use it before. Part of the caller's transaction. */
    createForRestore: (
      actor: Actor,
      project_id: string,
      body: Parameters<typeof newRow>[2],
      id = newId('vol'),
    ): string => insert(actor, { ...newRow(actor, project_id, body), id, filling: 1, touched: 1 }).id,
    isNameTaken: repository.hasName,
    /** Takes back a volume that was never filled. */
    dropUnfilled: (id: string): void =>
      db.tx(() => {
        const row = repository.find(id)
        if (row?.filling !== 1) return
        repository.deleteMountsOfVolume(id)
        repository.delete(id)
        note(row, 'volume.deleted')
      }),
    projectOf: (id: string) => repository.find(id)?.project_id,
    /** What is in use, with the bytes that each held when it was measured last. */
    stored: () => repository.all().filter(({ filling }) => filling === 0),
    /** Apps that may write to a volume. */
    writersOf: (id: string): string[] => [
      ...new Set(
        repository
          .mountsOfVolumes([id])
          .filter(({ read_only }) => read_only === 0)
          .map(({ app_id }) => app_id),
      ),
    ],
    find: repository.find,
    get: viewOne,
    list(actor: Actor, query: VolumeQuery) {
      const projects =
        wantedValues(query.project_id)?.filter((id) => projectRole(actor, id)) ?? visibleProjects(actor)
      const { rows, total } = repository.page(projects, query, ...limits(query))
      const all = repository.mountsOfVolumes(rows.map(({ id }) => id))
      return paged({ rows: rows.map((row) => view(row, all)), total }, query)
    },
    async create(actor: Actor, project_id: string, body: NewVolume): Promise<Volume> {
      ports.requireEngine()
      const row = insert(actor, newRow(actor, project_id, body))
      await askingEngine(() => make(row))
      return viewOne(row.id)
    },
    /**
     * The volumes of a compose app by their names in the file; those that are missing are made,
     * named after the app, and never one that another app mounts. What no service mounts any more
     * stays, with its data, as an ordinary volume of the project.
     */
    async ensureStack(app: StackApp, desired: readonly StackMount[]): Promise<ReadonlyMap<string, string>> {
      const rows = db.tx(() => {
        const names = [...new Set(desired.map(({ volume }) => volume))]
        const mounted = new Map(names.map((volume) => [volume, mounts.stackVolume(app.id, volume)]))
        const used = new Set([...mounted.values()].flatMap((row) => row?.id ?? []))
        return names.map((volume) => {
          const place = mounted.get(volume) ?? mounts.stackPlace(app, volume, used)
          const row =
            typeof place === 'string' ? madeFor(app, { name: place, access: 'single_writer' }) : place
          if (row.filling === 1)
            throw conflict(`The volume ${row.name} is being restored. Deploy once that has ended.`)
          used.add(row.id)
          return [volume, row] as const
        })
      })
      for (const [, row] of rows) if (row.status === 'creating') await make(row)
      const ids = new Map(rows.map(([volume, { id }]) => [volume, id] as const))
      db.tx(() => mounts.setStackMounts(app.id, desired, ids))
      return ids
    },
    /** The volume of a compose app by its name in the file, also when the file did not name it last time. */
    stackVolume(app: StackApp, volume: string): { id: string; is_mounted: boolean } | undefined {
      const mounted = mounts.stackVolume(app.id, volume)
      const found = mounted ?? mounts.leftVolume(app, volume)
      return found && { id: found.id, is_mounted: mounted !== undefined }
    },
    /** Mounts of the services of a compose app, from a copy; the next deployment finds its volumes by them. */
    restoreStackMounts: (app_id: string, expected: readonly StackMount[], ids: ReadonlyMap<string, string>) =>
      db.tx(() => mounts.setStackMounts(app_id, expected, ids)),
    /** Answers the id of the final backup, if one is taken first; then the rest is a job. */
    async remove(
      actor: Actor,
      id: string,
      { skip_backup = false }: { skip_backup?: boolean } = {},
    ): Promise<string | null> {
      ports.requireEngine()
      await askingEngine(() => data.lookFor([id]))
      const final = db.tx(() => {
        const row = get(id)
        if (row.filling === 1) throw conflict('The volume is being restored. Wait for the end of that.')
        const users = view(row, repository.mountsOfVolumes([id])).mounts
        if (users.length > 0)
          throw conflict(
            `The volume is mounted by ${users.map(({ app_name }) => app_name).join(', ')}. Remove the mount first.`,
          )
        if (ports.holders(row).length > 0) throw held()
        // What vanished cannot be copied any more, and what nothing ever held needs no copy.
        const holds_nothing = row.touched === 0 || row.status !== 'ready'
        const backup_id = skip_backup || holds_nothing ? null : ports.final().plan(actor, 'volume', id)
        transition(id, 'delete')
        record(actor, 'delete', row, { before: audited(row) })
        if (backup_id !== null)
          jobs.enqueue<VolumeDeletion>({
            kind: DELETE_KIND,
            lane: `volume:${id}`,
            subject: id,
            project_id: row.project_id,
            payload: { volume_id: id, backup_id },
          })
        return backup_id
      })
      if (final === null) await askingEngine(() => destroy(id))
      return final
    },
    /** Removes the volumes that only this app mounts, with all that is in them; part of its deletion. */
    async removeOf(app_id: string): Promise<void> {
      const ids = mounts.ownedBy(app_id)
      db.tx(() => {
        repository.deleteMountsOf(app_id)
        for (const id of ids) transition(id, 'delete')
      })
      // What the engine does not remove now goes with a later look: nobody mounts it any more, or would think of it.
      for (const id of ids) await destroy(id, { is_retried: true })
    },
    measure,
  }
}
export type Volumes = ReturnType<typeof createVolumes>
