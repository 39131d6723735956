import type { Extract } from 'tar-stream'

/** Bytes of the records before an entry: a path, times, and attributes that other systems write. */
const MOST_OF_ENTRY = 64 * 1024
/** Of the records before all entries: archives of git name their commit. Each entry gets a copy of them. */
const MOST_OF_ARCHIVE = 1024

/** What the reader does with a header, by its own names. */
interface Inside {
  _header: { type: string; size: number } | null
  _longHeader: boolean
  _consumeHeader(): boolean
  _continueWrite(error: Error): void
}

/**
 * Refuses long records. The reader takes 4 MiB of them at a time, half a million in one piece, and copies those
 * of the whole archive for each entry: a megabyte of archive kept the process busy for days.
 */
export function limitRecords(reader: Extract): void {
  const inside = reader as unknown as Inside
  const consume = inside._consumeHeader
  inside._consumeHeader = function () {
    const goes_on = consume.call(this)
    if (!goes_on || !this._longHeader) return goes_on
    const { type, size } = this._header!
    if (size <= (type === 'pax-global-header' ? MOST_OF_ARCHIVE : MOST_OF_ENTRY)) return true
    this._continueWrite(new Error('The records of the archive are too long.'))
    return false
  }
}
