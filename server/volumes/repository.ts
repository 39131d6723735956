import type { Db } from '#server/kernel/db'
import { type Page, selectPage, type Wanted, type Span } from '#server/kernel/page'
import type { VolumeStatus } from './schema.ts'

export interface VolumeRow {
  id: string
  project_id: string
  name: string
  status: VolumeStatus
  access: 'single_writer' | 'shared'
  size_bytes: number | null
  used_bytes: number | null
  measured_at: string | null
  /** What the engine calls its data; null while that is its own id. */
  data_id: string | null
  previous_data_id: string | null
  /** 1 while a restore makes it. */
  filling: number
  /** 1 once something could write to it. */
  touched: number
  created_by: string | null
  created_at: string
  updated_at: string
}
export interface MountRow {
  id: string
  app_id: string
  path: string
  volume_id: string | null
  read_only: number
  content: string | null
  content_bytes: number | null
  mode: number | null
  created_at: string
}

/** SQL of volumes and mounts and nothing else. */
export function createVolumeRepository(db: Db) {
  return {
    insert: (row: VolumeRow) =>
      db
        .sql(
          `INSERT INTO volumes (id, project_id, name, status, access, size_bytes, used_bytes, measured_at, data_id, previous_data_id, filling, touched, created_by, created_at, updated_at)
       VALUES (@id, @project_id, @name, @status, @access, @size_bytes, @used_bytes, @measured_at, @data_id, @previous_data_id, @filling, @touched, @created_by, @created_at, @updated_at)`,
        )
        .run(row),
    find: (id: string) => db.sql('SELECT * FROM volumes WHERE id = ?').get(id) as VolumeRow | undefined,
    hasName: (project_id: string, name: string) =>
      db.sql('SELECT 1 FROM volumes WHERE project_id = ? AND name = ?').pluck().get(project_id, name) === 1,
    findByName: (project_id: string, name: string) =>
      db.sql('SELECT * FROM volumes WHERE project_id = ? AND name = ?').get(project_id, name) as
        | VolumeRow
        | undefined,
    all: () => db.sql('SELECT * FROM volumes').all() as VolumeRow[],
    page: (
      project_ids: readonly string[] | undefined,
      filter: { project_id?: Wanted; status?: Wanted; q?: string },
      ...span: Span
    ): Page<VolumeRow> =>
      selectPage<VolumeRow>(
        db,
        {
          table: 'volumes',
          project_ids,
          equals: { project_id: filter.project_id, status: filter.status },
          contains: { column: 'name', text: filter.q },
        },
        span,
      ),
    /** Compare-and-set; false when the status has changed meanwhile. */
    setStatus: (id: string, from: VolumeStatus, to: VolumeStatus, at: string): boolean =>
      db
        .sql('UPDATE volumes SET status = ?, updated_at = ? WHERE id = ? AND status = ?')
        .run(to, at, id, from).changes === 1,
    setUsage: (id: string, used_bytes: number, at: string) =>
      db.sql('UPDATE volumes SET used_bytes = ?, measured_at = ? WHERE id = ?').run(used_bytes, at, id),
    setTouched: (id: string) => db.sql('UPDATE volumes SET touched = 1 WHERE id = ?').run(id),
    setData: (id: string, data: Pick<VolumeRow, 'data_id' | 'previous_data_id' | 'filling'>, at: string) =>
      db
        .sql(
          `UPDATE volumes SET data_id = @data_id, previous_data_id = @previous_data_id, filling = @filling,
             updated_at = @at WHERE id = @id`,
        )
        .run({ ...data, id, at }),
    insertSpare: (data_id: string, at: string) =>
      db.sql('INSERT INTO volume_spares VALUES (?, ?) ON CONFLICT DO NOTHING').run(data_id, at),
    deleteSpare: (id: string) => db.sql('DELETE FROM volume_spares WHERE data_id = ?').run(id),
    spares: () => db.sql('SELECT data_id FROM volume_spares').pluck().all() as string[],
    move: (id: string, project_id: string, at: string) =>
      db.sql('UPDATE volumes SET project_id = ?, updated_at = ? WHERE id = ?').run(project_id, at, id),
    delete: (id: string) => db.sql('DELETE FROM volumes WHERE id = ?').run(id),

    insertMount: (row: MountRow) =>
      db
        .sql(
          `INSERT INTO mounts (id, app_id, path, volume_id, read_only, content, content_bytes, mode, created_at)
       VALUES (@id, @app_id, @path, @volume_id, @read_only, @content, @content_bytes, @mode, @created_at)`,
        )
        .run(row),
    findMount: (id: string) => db.sql('SELECT * FROM mounts WHERE id = ?').get(id) as MountRow | undefined,
    mountsOfApp: (app_id: string) =>
      db.sql('SELECT * FROM mounts WHERE app_id = ? ORDER BY path').all(app_id) as MountRow[],
    mountsOfVolumes: (ids: readonly string[]) =>
      db
        .sql('SELECT * FROM mounts WHERE volume_id IN (SELECT value FROM json_each(?)) ORDER BY rowid')
        .all(JSON.stringify(ids)) as MountRow[],
    deleteMount: (id: string) => db.sql('DELETE FROM mounts WHERE id = ?').run(id),
    deleteMountsOfVolume: (volume_id: string) =>
      db.sql('DELETE FROM mounts WHERE volume_id = ?').run(volume_id),
    deleteMountsOf: (app_id: string) => db.sql('DELETE FROM mounts WHERE app_id = ?').run(app_id),
  }
}
export type VolumeRepository = ReturnType<typeof createVolumeRepository>
