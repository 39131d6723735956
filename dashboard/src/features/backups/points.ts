import type { Schemas } from '@/api/client'
import { bytes, duration, exactTime } from '@/lib/format'

type Backup = Schemas['Backup']

/** A point to go back to, in one line. */
export const pointWord = ({ created_at, size_bytes }: Backup): string =>
  size_bytes === null ? exactTime(created_at) : `${exactTime(created_at)}, ${bytes(size_bytes)}`

/** What is written when a backup is restored. */
export const sizeWord = ({ size_bytes, original_bytes }: Backup): string => {
  if (size_bytes === null) return 'not known'
  if (original_bytes === null) return `${bytes(size_bytes)} packed`
  return `${bytes(size_bytes)} packed, ${bytes(original_bytes)} unpacked`
}

/** How long it is likely to take: as long as it took on trial, else at least as long as the backup did. */
export function timeWord({ verification, duration_ms }: Backup): string {
  if (verification?.status === 'succeeded' && verification.duration_ms !== null)
    return `${duration(verification.duration_ms)} on trial`
  return duration_ms === null ? 'not known' : `not tried yet; the backup took ${duration(duration_ms)}`
}
