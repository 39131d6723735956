import type { Db } from '#server/kernel/db'
import { type Page, selectPage, type Wanted, type Span } from '#server/kernel/page'
import type { EngineName } from './engines.ts'
import type { DatabaseStatus } from './schema.ts'

/** A row of `databases`; passwords are sealed. */
export interface DatabaseRow {
  id: string
  project_id: string
  /** Set for a copy that a preview has of a database. */
  preview_id: string | null
  name: string
  engine: EngineName
  version: string
  image_id: string | null
  status: DatabaseStatus
  last_error: string | null
  database_name: string
  generation: number
  password: string
  next_password: string | null
  previous_password: string | null
  admin_password: string
  volume_id: string
  volume_made: number
  previous_volume_id: string | null
  previous_version: string | null
  /** What the volume from before takes on the disk, in bytes, as it was measured last. */
  previous_used_bytes: number | null
  used_bytes: number | null
  cpus: number
  memory_bytes: number
  public_port: number | null
  /** Days that can be gone back; null while the log is not archived. */
  archive_days: number | null
  /** Null for the default one. */
  archive_destination_id: string | null
  archive_encrypted: number
  created_by: string | null
  created_at: string
  updated_at: string
}
export interface LinkRow {
  database_id: string
  app_id: string
  key: string
  created_at: string
}
export interface SpareRow {
  volume_id: string
  database_id: string
  project_id: string
  created_at: string
}
/** Data from before the last but one replacement. */
export interface OlderRow {
  volume_id: string
  database_id: string
  project_id: string
  version: string
  used_bytes: number | null
  created_at: string
}
/** What a database takes on the disk, in bytes. */
export interface StoredRow {
  id: string
  /** Volume of its own data. */
  data_id: string
  name: string
  project_id: string
  used_bytes: number
  /** Of the data from before restores and upgrades. */
  kept_bytes: number
}
/** Columns that change after a database was made; keys of an update come from this list only. */
const CHANGEABLE = [
  'version',
  'image_id',
  'last_error',
  'generation',
  'password',
  'next_password',
  'previous_password',
  'volume_id',
  'volume_made',
  'previous_volume_id',
  'previous_version',
  'previous_used_bytes',
  'used_bytes',
  'cpus',
  'memory_bytes',
  'public_port',
  'archive_days',
  'archive_destination_id',
  'archive_encrypted',
] as const
export type DatabaseColumns = Partial<Pick<DatabaseRow, (typeof CHANGEABLE)[number]>>

/** SQL of what is kept from before restores and upgrades of a database, in bytes. */
const KEPT_BYTES = `coalesce(previous_used_bytes, 0) + coalesce(
  (SELECT sum(older.used_bytes) FROM database_older_volumes older WHERE older.database_id = databases.id), 0)`
/** SQL of all that a database takes on the disk, in bytes. */
export const STORED_BYTES = `coalesce(used_bytes, 0) + ${KEPT_BYTES}`

/** SQL of databases, their links and their spares, and nothing else. */
export function createDatabaseRepository(db: Db) {
  return {
    ...databaseRows(db),
    ...linkRows(db),
    ...olderRows(db),
    /** Databases of a project that are not on their way out. */
    inProject: (project_id: string) =>
      db
        .sql(`SELECT * FROM databases WHERE project_id = ? AND status <> 'deleting'`)
        .all(project_id) as DatabaseRow[],
    insertSpare: (row: SpareRow) =>
      db
        .sql(
          `INSERT INTO database_spares (volume_id, database_id, project_id, created_at)
       VALUES (@volume_id, @database_id, @project_id, @created_at) ON CONFLICT DO NOTHING`,
        )
        .run(row),
    spares: () => db.sql('SELECT * FROM database_spares ORDER BY created_at').all() as SpareRow[],
    deleteSpare: (volume_id: string) =>
      db.sql('DELETE FROM database_spares WHERE volume_id = ?').run(volume_id),
  }
}

const databaseRows = (db: Db) => ({
  insert: (row: DatabaseRow) => {
    const columns = Object.keys(row)
    db.sql(
      `INSERT INTO databases (${columns.join(', ')}) VALUES (${columns.map((name) => `@${name}`).join(', ')})`,
    ).run(row)
  },
  find: (id: string) => db.sql('SELECT * FROM databases WHERE id = ?').get(id) as DatabaseRow | undefined,
  findByName: (project_id: string, name: string) =>
    db.sql('SELECT * FROM databases WHERE project_id = ? AND name = ?').get(project_id, name) as
      | DatabaseRow
      | undefined,
  findByVolume: (volume_id: string) =>
    db.sql('SELECT * FROM databases WHERE volume_id = ?').get(volume_id) as DatabaseRow | undefined,
  all: () => db.sql('SELECT * FROM databases ORDER BY rowid').all() as DatabaseRow[],
  page: (
    project_ids: readonly string[] | undefined,
    equals: { id?: Wanted; project_id?: Wanted; engine?: Wanted; status?: Wanted },
    text: string | undefined,
    ...span: Span
  ): Page<DatabaseRow> =>
    selectPage<DatabaseRow>(
      db,
      {
        table: 'databases',
        project_ids,
        equals,
        contains: { column: 'name', text },
      },
      span,
    ),
  portsTaken: () =>
    db.sql('SELECT public_port FROM databases WHERE public_port IS NOT NULL').pluck().all() as number[],
  update(id: string, change: DatabaseColumns, at: string) {
    const names = CHANGEABLE.filter((name) => name in change)
    db.sql(
      `UPDATE databases SET ${[...names.map((name) => `${name} = @${name}`), 'updated_at = @at'].join(', ')} WHERE id = @id`,
    ).run({ ...change, id, at })
  },
  /** Notes how much is stored; not a change of the database. */
  setUsedBytes: (volume_id: string, used_bytes: number) =>
    db.tx(() => {
      for (const sql of [
        'UPDATE databases SET used_bytes = @used_bytes WHERE volume_id = @volume_id',
        'UPDATE databases SET previous_used_bytes = @used_bytes WHERE previous_volume_id = @volume_id',
        'UPDATE database_older_volumes SET used_bytes = @used_bytes WHERE volume_id = @volume_id',
      ])
        db.sql(sql).run({ volume_id, used_bytes })
    }),
  /** What each takes on the disk: its own data, and those from before. */
  stored: () =>
    db
      .sql(
        `SELECT id, volume_id AS data_id, name, project_id, coalesce(used_bytes, 0) AS used_bytes,
           ${KEPT_BYTES} AS kept_bytes FROM databases`,
      )
      .all() as StoredRow[],
  /** All volumes with data of databases, and what they took when they were measured last. */
  measured: () =>
    db
      .sql(
        `SELECT volume_id, used_bytes FROM databases
         UNION ALL SELECT previous_volume_id, previous_used_bytes FROM databases
           WHERE previous_volume_id IS NOT NULL
         UNION ALL SELECT volume_id, used_bytes FROM database_older_volumes`,
      )
      .all() as Pick<OlderRow, 'volume_id' | 'used_bytes'>[],
  setStatus: (id: string, from: DatabaseStatus, to: DatabaseStatus, at: string): boolean =>
    db
      .sql('UPDATE databases SET status = ?, updated_at = ? WHERE id = ? AND status = ?')
      .run(to, at, id, from).changes === 1,
  delete: (id: string) =>
    db.tx(() => {
      db.sql('DELETE FROM database_older_volumes WHERE database_id = ?').run(id)
      db.sql('DELETE FROM databases WHERE id = ?').run(id)
    }),
})

const olderRows = (db: Db) => ({
  insertOlder: (row: OlderRow) =>
    db
      .sql(
        `INSERT INTO database_older_volumes (volume_id, database_id, project_id, version, used_bytes, created_at)
       VALUES (@volume_id, @database_id, @project_id, @version, @used_bytes, @created_at)`,
      )
      .run(row),
  /** The newest first. */
  older: (database_id: string) =>
    db
      .sql('SELECT * FROM database_older_volumes WHERE database_id = ? ORDER BY rowid DESC')
      .all(database_id) as OlderRow[],
  deleteOlder: (volume_id: string) =>
    db.sql('DELETE FROM database_older_volumes WHERE volume_id = ?').run(volume_id),
})

const linkRows = (db: Db) => ({
  links: (database_id: string) =>
    db.sql('SELECT * FROM database_links WHERE database_id = ? ORDER BY rowid').all(database_id) as LinkRow[],
  linksOf: (app_id: string) =>
    db.sql('SELECT * FROM database_links WHERE app_id = ? ORDER BY rowid').all(app_id) as LinkRow[],
  insertLink: (row: LinkRow) =>
    db
      .sql(
        'INSERT INTO database_links (database_id, app_id, key, created_at) VALUES (@database_id, @app_id, @key, @created_at)',
      )
      .run(row),
  deleteLink: (database_id: string, app_id: string): boolean =>
    db.sql('DELETE FROM database_links WHERE database_id = ? AND app_id = ?').run(database_id, app_id)
      .changes === 1,
})
export type DatabaseRepository = ReturnType<typeof createDatabaseRepository>
