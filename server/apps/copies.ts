import { isDeepStrictEqual } from 'node:util'
import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import { audited } from './audited.ts'
import {
  changedSettings,
  checkSource,
  configurationOf,
  newColumns,
  type SourceChecks,
} from './configuration.ts'
import { requireNoPreview } from './preview-apps.ts'
import type { AppEventName } from './machine.ts'
import type { AppRepository, AppRow } from './repository.ts'
import type { AppSource } from './schema.ts'
import type { createAppShares } from './shares.ts'
import type { AppSnapshot } from './snapshot-schema.ts'

/** What leads back from a deletion that could not begin. */
const KEPT = new Map<string, AppEventName>([
  ['running', 'keep_running'],
  ['starting', 'keep_stopped'],
  ['crashed', 'keep_crashed'],
  ['stopped', 'keep_stopped'],
  ['stopping', 'keep_stopped'],
])

export interface CopyOptions {
  db: Db
  clock: Clock
  audit: AuditTrail
  checks: SourceChecks
  repository: AppRepository
  shares: ReturnType<typeof createAppShares>
  ports: {
    requireQuota(project_id: string): void
    addAutomaticDomain(app: AppRow): void
    requireEngine(): void
    /** Notes in the current transaction that a last copy of the app is due; answers its id. */
    planFinalBackup(app: AppRow, actor: Actor, options: { volumes: boolean }): string
    cancelDeployments(app_id: string): void
    deleting(app_id: string): void
    enqueue(
      kind: 'app.delete',
      app: AppRow,
      more: { volumes: boolean; backup_id: string | null; was: string },
    ): string
  }
  get(id: string): AppRow
  note(app: AppRow, type: string, payload?: Record<string, unknown>, actor?: Actor): void
  transition(id: string, event: AppEventName): unknown
}

/** Apps as backups see them: what a copy keeps of one, how it comes back, and a deletion that did not begin. */
export function createCopies(options: CopyOptions) {
  const { db, clock, audit, checks, repository, shares, ports, get, note, transition } = options
  /** Throws 409 when an app has the name. */
  const requireFreeName = (name: string): void => {
    if (repository.findByName(name))
      throw conflict(`An app named ${name} exists already. Choose another name.`)
  }
  return {
    requireFreeName,
    /**
     * An app that a restore is about to fill: it has a name and nothing to run. Part of the caller's
     * transaction.
     */
    createForRestore(actor: Actor, project_id: string, name: string): string {
      const columns = newColumns(newId('app'), project_id, { name, source: 'upload' }, clock.iso())
      return db.tx(() => {
        requireFreeName(name)
        ports.requireQuota(project_id)
        repository.insert(columns)
        const row = get(columns.id)
        ports.addAutomaticDomain(row)
        note(row, 'app.created', {}, actor)
        audit.record(actor, {
          action: 'app.create',
          resource_type: 'app',
          resource_id: row.id,
          project_id,
          after: audited(row),
        })
        return row.id
      })
    },
    /** What a copy of an app keeps of its row. */
    snapshot(id: string): AppSnapshot {
      const row = get(id)
      return {
        configuration: { ...configurationOf(row), source: row.source as AppSource },
        auto_deploy: row.auto_deploy === 1,
        watch_paths: JSON.parse(row.watch_paths) as string[],
        soak_seconds: row.soak_seconds,
      }
    },
    /** Makes an app what it was in such a copy; answers whether anything changed. */
    restoreSnapshot(actor: Actor, id: string, stored: AppSnapshot): boolean {
      const { configuration, auto_deploy, watch_paths, soak_seconds } = stored
      const { source, git_url, branch, image, ...rest } = configuration
      const present = { git_url, branch, image }
      const given = Object.fromEntries(Object.entries(present).filter(([, value]) => value !== null))
      checkSource(given, checks)
      return db.tx(() => {
        const before = get(id)
        if (isDeepStrictEqual(this.snapshot(id), stored)) return false
        const { build, health_check, limits, processes, ...plain } = rest
        const columns = {
          ...plain,
          ...present,
          build: JSON.stringify(build),
          health_check: JSON.stringify(health_check),
          limits: JSON.stringify(limits),
          processes: JSON.stringify(processes),
          auto_deploy: auto_deploy ? 1 : 0,
          watch_paths: JSON.stringify(watch_paths),
          soak_seconds,
        }
        shares.within(before.project_id, () => {
          repository.setSource(id, source)
          repository.update(id, columns, clock.iso())
        })
        const row = get(id)
        note(row, 'app.updated', { changed: changedSettings(before, row) }, actor)
        audit.record(actor, {
          action: 'app.restore',
          resource_type: 'app',
          resource_id: id,
          project_id: row.project_id,
          before: audited(before),
          after: audited(row),
        })
        return true
      })
    },
    /** Answers the id of the final backup, if one is taken first. */
    delete: (
      actor: Actor,
      id: string,
      { volumes = false, skip_backup = false }: { volumes?: boolean; skip_backup?: boolean } = {},
    ): string | null =>
      db.tx(() => {
        ports.requireEngine()
        const row = get(id)
        if (row.status === 'deleting') return null
        requireNoPreview(row)
        ports.deleting(id)
        const backup_id = skip_backup ? null : ports.planFinalBackup(row, actor, { volumes })
        transition(id, 'delete')
        ports.cancelDeployments(id)
        ports.enqueue('app.delete', row, { volumes, backup_id, was: row.status })
        audit.record(actor, {
          action: 'app.delete',
          resource_type: 'app',
          resource_id: id,
          project_id: row.project_id,
          before: audited(row),
        })
        return backup_id
      }),
    /** The last copy of an app could not be taken, so that it goes on as it was. */
    keep: (id: string, was: string, error: string): void =>
      db.tx(() => {
        transition(id, KEPT.get(was) ?? 'keep_failed')
        repository.setLastError(id, error)
        note(get(id), 'app.delete_failed', { error })
      }),
  }
}
