import type { Actor } from '#server/kernel/access'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { ApiError } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { markNow, sinceMark } from '#server/kernel/stopwatch'
import type { Archives } from './archives.ts'
import { asAnswer } from './as-answer.ts'
import { backupEvent } from './backup-job.ts'
import type { LeftArchives } from './left-archives.ts'
import { backupMachine } from './machine.ts'
import type { BackupRepository, BackupRow } from './repository.ts'
import type { Backup } from './schema.ts'
import type { Subject } from './target.ts'

export interface ReceivingOptions {
  db: Db
  clock: Clock
  events: Events
  repository: BackupRepository
  archives: Archives
  left: Pick<LeftArchives, 'discard'>
  get(id: string): BackupRow
  view(row: BackupRow): Backup
  /** Makes the row of an upload for a database that the caller may back up. */
  insert(actor: Actor, database_id: string): { row: BackupRow; subject: Subject }
}

/** Dumps that people send. */
export function createReceiving(options: ReceivingOptions) {
  const { db, clock, events, repository, archives, left, get, view, insert } = options
  const failReceived = (row: BackupRow, error: string): void =>
    db.tx(() => {
      repository.setStatus(row.id, get(row.id).status, backupMachine.next('running', 'fail'))
      repository.update(row.id, { error, finished_at: clock.iso(), size_bytes: null, sha256: null })
      events.append(backupEvent(row, 'failed', { error }))
    })

  return {
    /**
     * Keeps a dump that somebody sends as a backup of a database: once it is whole, it can be restored like any
     * other. What breaks off or is no dump leaves nothing.
     */
    async receive(actor: Actor, database_id: string, bytes: AsyncIterable<Uint8Array>): Promise<Backup> {
      const { row, subject } = insert(actor, database_id)
      repository.setStatus(row.id, 'queued', backupMachine.next('queued', 'begin'))
      const began = markNow(clock)
      try {
        const written = await archives.write(row, bytes, new AbortController().signal, () => {})
        repository.update(row.id, { ...written, duration_ms: sinceMark(clock, began) })
        await archives.describe(get(row.id), { apps: subject.apps })
      } catch (error) {
        await left.discard(row).catch(() => undefined)
        failReceived(row, error instanceof ApiError ? error.message : 'The upload broke off.')
        throw asAnswer(error)
      }
      return db.tx(() => {
        repository.setStatus(row.id, 'running', backupMachine.next('running', 'succeed'))
        repository.update(row.id, { finished_at: clock.iso() })
        events.append(backupEvent(get(row.id), 'succeeded'))
        return view(get(row.id))
      })
    },
    /** Uploads that the last process was receiving when it ended; what came of them goes from their destination. */
    settleReceived(): void {
      for (const row of repository.underWay()) {
        if (row.trigger !== 'upload') continue
        failReceived(row, 'Portreeve ended while it was received.')
        left.discard(row).catch(() => undefined)
      }
    },
  }
}
