import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { openDb } from '#server/kernel/db'
import { KEY_FILES } from '#server/kernel/secrets'
import { ArchiveError } from '../archive/archive-error.ts'

/** What an archive of the platform may hold. */
const FILES = new Set<string>(['portreeve.db', ...KEY_FILES])

/** Writes the files of an archive into a folder. Anything but what belongs there is refused. */
export async function unpackPlatform(source: AsyncIterable<Uint8Array>, folder: string): Promise<string[]> {
  const { extract } = await import('tar-stream')
  const tar = extract()
  const reading = pipeline(source, tar)
  reading.catch(() => {})
  const names: string[] = []
  for await (const entry of tar) {
    const { name, type } = entry.header
    if (type !== 'file' || !FILES.has(name) || names.includes(name))
      throw new ArchiveError('damaged', 'The archive holds something that is not part of the platform.')
    names.push(name)
    await pipeline(entry, createWriteStream(join(folder, name), { mode: 0o600, flags: 'wx' }))
  }
  await reading
  if (!names.includes('portreeve.db'))
    throw new ArchiveError('damaged', 'The archive holds no database of Portreeve.')
  return names
}

export interface PlatformContents {
  /** Rows of each table. */
  counts: Record<string, number>
}

/** Opens a database of the platform, checks all of it, and counts what is in it. */
export function inspectPlatform(path: string): PlatformContents {
  const db = openDb(path)
  try {
    const integrity = db.raw.pragma('integrity_check', { simple: true })
    if (integrity !== 'ok')
      throw new ArchiveError('damaged', `The database in the archive is damaged: ${String(integrity)}`)
    const tables = db
      .sql(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`)
      .pluck()
      .all() as string[]
    return {
      counts: Object.fromEntries(
        tables.map((table) => [table, db.sql(`SELECT count(*) FROM "${table}"`).pluck().get() as number]),
      ),
    }
  } finally {
    db.close()
  }
}
