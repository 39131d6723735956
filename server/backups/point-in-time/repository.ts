import type { Db } from '#server/kernel/db'

/** The log of one volume of a database at one destination, without a gap. */
export interface ArchiveRow {
  id: string
  database_id: string
  project_id: string
  volume_id: string
  destination_id: string
  encrypted: number
  /** Sealed; null when nothing is encrypted. */
  data_key: string | null
  version: string
  database_name: string
  days: number
  status: 'active' | 'closed'
  mark: string | null
  cut_piece: string | null
  cut_at: string | null
  complete_until: string | null
  last_archived_at: string | null
  waiting_bytes: number
  failing_since: string | null
  /** When somebody was told that it fails. */
  told_at: string | null
  error: string | null
  created_at: string
}
export interface CopyRow {
  id: string
  archive_id: string
  status: 'copying' | 'ready' | 'failed'
  object_key: string
  first_piece: string
  ready_at: string | null
  size_bytes: number | null
  original_bytes: number | null
  sha256: string | null
  created_at: string
}
export interface PieceRow {
  archive_id: string
  name: string
  size_bytes: number
  original_bytes: number
  sha256: string
  complete_until: string | null
  archived_at: string
}
const ARCHIVE_COLUMNS = [
  'days',
  'status',
  'mark',
  'cut_piece',
  'cut_at',
  'complete_until',
  'last_archived_at',
  'waiting_bytes',
  'failing_since',
  'told_at',
  'error',
] as const
const COPY_COLUMNS = ['status', 'ready_at', 'size_bytes', 'original_bytes', 'sha256'] as const
export type ArchiveColumns = Partial<Pick<ArchiveRow, (typeof ARCHIVE_COLUMNS)[number]>>
export type CopyColumns = Partial<Pick<CopyRow, (typeof COPY_COLUMNS)[number]>>

/** SQL of archives of logs and nothing else. */
export function createLogArchiveRepository(db: Db) {
  const insert = (table: string, row: object) => {
    const columns = Object.keys(row)
    db.sql(
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map((name) => `@${name}`).join(', ')})`,
    ).run(row)
  }
  const update = (table: string, names: readonly string[], id: string, change: object) => {
    const given = names.filter((name) => Object.hasOwn(change, name))
    if (given.length === 0) return
    db.sql(`UPDATE ${table} SET ${given.map((name) => `${name} = @${name}`).join(', ')} WHERE id = @id`).run({
      ...change,
      id,
    })
  }
  return {
    insertArchive: (row: ArchiveRow) => insert('log_archives', row),
    insertCopy: (row: CopyRow) => insert('log_copies', row),
    insertPiece: (row: PieceRow) => {
      db.sql('DELETE FROM log_pieces WHERE archive_id = ? AND name = ?').run(row.archive_id, row.name)
      insert('log_pieces', row)
    },
    updateArchive: (id: string, change: ArchiveColumns) =>
      update('log_archives', ARCHIVE_COLUMNS, id, change),
    updateCopy: (id: string, change: CopyColumns) => update('log_copies', COPY_COLUMNS, id, change),
    find: (id: string) => db.sql('SELECT * FROM log_archives WHERE id = ?').get(id) as ArchiveRow | undefined,
    active: (database_id: string) =>
      db.sql(`SELECT * FROM log_archives WHERE database_id = ? AND status = 'active'`).get(database_id) as
        | ArchiveRow
        | undefined,
    /** Of one database, oldest first. */
    of: (database_id: string) =>
      db
        .sql('SELECT * FROM log_archives WHERE database_id = ? ORDER BY created_at, rowid')
        .all(database_id) as ArchiveRow[],
    all: () => db.sql('SELECT * FROM log_archives ORDER BY created_at, rowid').all() as ArchiveRow[],
    /** Size of the copies and logs of a project. */
    bytesOf: (project_id: string) =>
      db
        .sql(
          `SELECT coalesce(sum(size_bytes), 0) FROM (
             SELECT size_bytes, archive_id FROM log_copies UNION ALL SELECT size_bytes, archive_id FROM log_pieces)
           WHERE archive_id IN (SELECT id FROM log_archives WHERE project_id = ?)`,
        )
        .pluck()
        .get(project_id) as number,
    countAt: (destination_id: string) =>
      db
        .sql('SELECT count(*) FROM log_archives WHERE destination_id = ?')
        .pluck()
        .get(destination_id) as number,
    findCopy: (id: string) => db.sql('SELECT * FROM log_copies WHERE id = ?').get(id) as CopyRow | undefined,
    /** Copies of an archive, oldest first. */
    copies: (archive_id: string) =>
      db
        .sql('SELECT * FROM log_copies WHERE archive_id = ? ORDER BY created_at, rowid')
        .all(archive_id) as CopyRow[],
    deleteCopy: (id: string) => db.sql('DELETE FROM log_copies WHERE id = ?').run(id),
    findPiece: (archive_id: string, name: string) =>
      db.sql('SELECT * FROM log_pieces WHERE archive_id = ? AND name = ?').get(archive_id, name) as
        | PieceRow
        | undefined,
    piecesFrom: (archive_id: string, first: string) =>
      db
        .sql('SELECT * FROM log_pieces WHERE archive_id = ? AND name >= ? ORDER BY name')
        .all(archive_id, first) as PieceRow[],
    /** Pieces that come before the one with this name; all of them without a name. */
    piecesBefore: (archive_id: string, name: string | undefined) =>
      db
        .sql('SELECT * FROM log_pieces WHERE archive_id = ? AND (? IS NULL OR name < ?) ORDER BY name')
        .all(archive_id, name ?? null, name ?? null) as PieceRow[],
    deletePiece: (archive_id: string, name: string) =>
      db.sql('DELETE FROM log_pieces WHERE archive_id = ? AND name = ?').run(archive_id, name),
    deleteArchive: (id: string) => db.sql('DELETE FROM log_archives WHERE id = ?').run(id),
  }
}
export type LogArchiveRepository = ReturnType<typeof createLogArchiveRepository>
