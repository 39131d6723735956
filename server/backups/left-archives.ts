import type { Log } from '#server/kernel/log'
import type { Archives } from './archives.ts'
import type { BackupRepository, BackupRow } from './repository.ts'

export interface LeftArchivesOptions {
  repository: Pick<BackupRepository, 'left' | 'setLeft'>
  archives: Pick<Archives, 'remove'>
  log: Log
}

/**
 * What came of backups that failed. What fails one, such as a destination that does not answer, keeps its halves from
 * being removed as well, and nobody else knows of them: the row says so until they are gone.
 */
export function createLeftArchives({ repository, archives, log }: LeftArchivesOptions) {
  /** Removes it. Throws where its destination does not let it go now; then it is tried again later. */
  async function discard(row: BackupRow): Promise<void> {
    repository.setLeft(row.id, true)
    await archives.remove(row)
    repository.setLeft(row.id, false)
  }
  return {
    discard,
    /** Removes what could not be removed before. A destination that still does not answer is asked once. */
    async pass(): Promise<void> {
      const away = new Set<string>()
      for (const row of repository.left()) {
        if (away.has(row.destination_id)) continue
        await discard(row).catch((error: unknown) => {
          away.add(row.destination_id)
          log.warn('What came of a backup that failed cannot be removed yet', { backup: row.id, error })
        })
      }
    },
  }
}
export type LeftArchives = ReturnType<typeof createLeftArchives>
