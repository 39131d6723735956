import { ApiError } from '#server/kernel/errors'
import { type FailureCode, failureOf } from '#server/kernel/failures'
import { Fatal, type Verdict } from '#server/kernel/jobs/definition'
import { SecretUnreadableError } from '#server/kernel/secrets'
import { EngineError } from '#server/platform/engine/engine'
import { ObjectStoreError } from '#server/platform/objectstore/objectstore'
import { ArchiveError } from './archive/archive-error.ts'

const HINTS: Partial<Record<ObjectStoreError['code'], string>> = {
  full: 'No partial backup was kept, and no older backup was deleted. Free space at the destination.',
  denied: 'Correct the destination, then test it with POST /api/storage-providers/:id/test.',
  host_key: 'Correct the destination, then test it with POST /api/storage-providers/:id/test.',
}

/** What the system and SQLite call a full disk. */
const NO_SPACE = new Set(['ENOSPC', 'EDQUOT', 'SQLITE_FULL'])

/** What an error means for a backup or a restore: tell, try again, or wait for what is down. */
export function classify(error: unknown): Verdict {
  const verdict = (
    kind: Verdict['kind'],
    code: FailureCode,
    message: string,
    hint: string | null = null,
  ) => ({
    kind,
    code,
    message,
    hint,
    log: [],
  })
  if (error instanceof Fatal)
    return { ...verdict('user', error.code, error.message, error.hint), log: error.log }
  if (error instanceof ObjectStoreError)
    return verdict(
      ['unreachable', 'failed'].includes(error.code) ? 'system' : 'user',
      `destination_${error.code}`,
      error.message,
      HINTS[error.code] ?? null,
    )
  if (error instanceof ArchiveError)
    return verdict(
      'user',
      `archive_${error.code}`,
      error.message,
      error.code === 'damaged' ? 'Nothing was changed. Restore another backup.' : null,
    )
  if (error instanceof EngineError)
    return verdict(
      error.code === 'unavailable' ? 'wait' : 'system',
      error.code === 'unavailable' ? 'engine_unavailable' : error.code,
      error.message,
      error.hint ?? null,
    )
  if (error instanceof SecretUnreadableError) return verdict('user', 'secret_unreadable', error.message)
  if (error instanceof ApiError) return verdict('user', failureOf(error), error.message)
  const { code } = error as NodeJS.ErrnoException
  if (NO_SPACE.has(String(code)))
    return verdict('user', 'disk_full', 'The disk of this server is full.', 'Free space, then try again.')
  return verdict('system', 'internal', 'Portreeve met a fault of its own.', 'Look at its log.')
}
