import type { Actor } from '#server/kernel/access'
import type { Db } from '#server/kernel/db'
import { conflict, invalid } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import type { Jobs } from '#server/kernel/jobs/jobs'
import type { Archives } from './archives.ts'
import { backupEvent } from './backup-job.ts'
import { backupMachine } from './machine.ts'
import type { BackupRepository, BackupRow } from './repository.ts'
import { RESTORE_KIND, type RestorePayload } from './restore-job.ts'
import type { Restore, RestoreBackup, Target } from './schema.ts'
import type { BackedUpLink, BackupTarget, RestoreRequest } from './target.ts'

export interface RestoresOptions {
  db: Db
  events: Events
  jobs: Jobs
  repository: Pick<BackupRepository, 'find'>
  archives: Pick<Archives, 'openKey'>
  get(id: string): BackupRow
  targetOf(kind: Target): BackupTarget
  isProject(id: string): boolean
  note(actor: Actor, action: string, row: BackupRow, after: Record<string, unknown>): void
}
type Given = RestoreBackup & Pick<RestoreRequest, 'preview_id' | 'parts'>

/** The answer to a restore as something new that would have the name of what is there. */
export const nameNeeded = (name: string) =>
  invalid('name', `is required: «${name}» is there already, so what is made needs another name.`)

/** Restores as they are asked for; the job does the rest. */
export function createRestores(options: RestoresOptions) {
  const { db, events, jobs, repository, archives, get, targetOf, isProject, note } = options
  /** The project that is restored into. Of one that was deleted only administrators see backups. */
  const projectFor = (row: BackupRow, { mode, project_id }: Given): string => {
    if (isProject(row.project_id) || mode !== 'new') {
      if (project_id === undefined) return row.project_id
      throw invalid(
        'project_id',
        'is for backups whose project was deleted: this one is restored into its own.',
      )
    }
    if (project_id === undefined)
      throw invalid('project_id', 'is required: the project of this backup was deleted.')
    if (!isProject(project_id)) throw invalid('project_id', 'is no project.')
    return project_id
  }
  /** What is needed to begin; throws for what the rows alone forbid. */
  const requestOf = (id: string, given: Given) => {
    const row = get(id)
    backupMachine.next(row.status, 'restore')
    const { restore } = targetOf(row.target)
    if (!restore)
      throw conflict('The platform is restored on the host: run portreeve restore with the archive.')
    const project_id = projectFor(row, given)
    // What is made beside its original cannot have its name.
    const needs_name = given.mode === 'new' && given.name === undefined
    if (needs_name && restore.isNameTaken(project_id, row.target_name)) throw nameNeeded(row.target_name)
    archives.openKey(row)
    const request = {
      target_id: row.target_id,
      source_id: row.target_id,
      project_id,
      mode: given.mode,
      ...(given.preview_id ? { preview_id: given.preview_id } : {}),
      ...(given.parts ? { parts: given.parts } : {}),
      ...(given.mode === 'new' && row.links ? { links: JSON.parse(row.links) as BackedUpLink[] } : {}),
      name: given.name ?? row.target_name,
      engine: row.engine,
      version: row.version,
    }
    restore.requirePossible?.(request)
    return { row, restore, request }
  }
  return {
    /** Throws what a restore is refused with before anything is read; answers the backup, and where it goes. */
    requirePossible(id: string, given: Given): { row: BackupRow; project_id: string } {
      const { row, request } = requestOf(id, given)
      return { row, project_id: request.project_id }
    },
    /** @param target_id set when the restore was asked for at its target. */
    restore(actor: Actor, id: string, given: Given, target_id?: string): Restore {
      if (target_id !== undefined && repository.find(id)?.target_id !== target_id)
        throw invalid(
          'backup_id',
          'is no backup of this database. GET /api/backups lists them; one of another database is restored into a new one with POST /api/backups/:id/restore.',
        )
      return db.tx(() => {
        const { row, restore, request } = requestOf(id, given)
        const made = restore.begin({ ...request, restore_id: '' })
        const payload: RestorePayload = { ...request, target_id: made, backup_id: id, target: row.target }
        const [lane, ...lanes] = restore.lanes(made)
        const job_id = jobs.enqueue<RestorePayload>({
          kind: RESTORE_KIND,
          lane,
          lanes,
          subject: made,
          project_id: request.project_id,
          payload,
        })
        note(actor, 'restore', row, { mode: given.mode, target_id: made })
        events.append({
          ...backupEvent(row, 'restore_started', { job_id, mode: given.mode, restored_id: made }),
          actor_id: actor.user_id || null,
        })
        return {
          job_id,
          backup_id: id,
          at: null,
          mode: given.mode,
          target: row.target,
          target_id: made,
          status: 'queued',
        }
      })
    },
  }
}
