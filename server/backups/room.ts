import { conflict } from '#server/kernel/errors'
import { PLATFORM_PROJECT } from './repository.ts'

/** The bytes that archives of a project may have together; undefined without a limit. */
export type BackupQuota = (project_id: string) => number | undefined

/**
 * Throws 409 when the backups of a project hold what they may, or more once some came with a move. How large one gets
 * is known at its end, so that whoever makes them asks before each.
 */
export const createRoom =
  (bytesOf: (project_id: string) => number, quota: BackupQuota) =>
  (project_id: string, has_come = false): void => {
    const most = project_id === PLATFORM_PROJECT ? undefined : quota(project_id)
    if (most === undefined) return
    const held = bytesOf(project_id)
    if (has_come ? held > most : held >= most)
      throw conflict(
        `Backups of the project may hold ${most} bytes together, and hold ${held}. Delete some, or ask an administrator to raise the quota backup_bytes. What is deleted without a final backup (skip_backup=true) needs no room.`,
      )
  }
export type Room = ReturnType<typeof createRoom>
