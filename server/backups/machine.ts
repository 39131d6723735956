import { createMachine } from '#server/kernel/machine'

export const BACKUP_STATUSES = ['queued', 'running', 'succeeded', 'failed'] as const
export type BackupStatus = (typeof BACKUP_STATUSES)[number]
export type BackupEvent = 'begin' | 'succeed' | 'fail' | 'delete' | 'restore' | 'verify' | 'download'

/** A backup that ended never begins again; only one that succeeded can be used. */
export const backupMachine = createMachine<BackupStatus, BackupEvent>('a backup', {
  queued: { begin: 'running', fail: 'failed' },
  running: { begin: 'running', succeed: 'succeeded', fail: 'failed' },
  succeeded: { restore: 'succeeded', verify: 'succeeded', download: 'succeeded', delete: 'succeeded' },
  failed: { delete: 'failed' },
})
