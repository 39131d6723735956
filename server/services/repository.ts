import type { Db } from '#server/kernel/db'

export interface ServiceRow {
  id: string
  app_id: string
  project_id: string
  name: string
  stopped: number
  created_at: string
  updated_at: string
}

/** SQL of services of compose apps and nothing else. */
export function createServiceRepository(db: Db) {
  return {
    find: (id: string) => db.sql('SELECT * FROM services WHERE id = ?').get(id) as ServiceRow | undefined,
    ofApp: (app_id: string) =>
      db.sql('SELECT * FROM services WHERE app_id = ? ORDER BY name').all(app_id) as ServiceRow[],
    insert: (row: Omit<ServiceRow, 'stopped'>) =>
      db
        .sql(
          `INSERT OR IGNORE INTO services (id, app_id, project_id, name, created_at, updated_at)
           VALUES (@id, @app_id, @project_id, @name, @created_at, @updated_at)`,
        )
        .run(row),
    delete: (id: string) => db.sql('DELETE FROM services WHERE id = ?').run(id),
    /** Compare-and-set; false when it was so already. */
    setStopped: (id: string, stopped: boolean, at: string): boolean =>
      db
        .sql(
          'UPDATE services SET stopped = @stopped, updated_at = @at WHERE id = @id AND stopped <> @stopped',
        )
        .run({ id, stopped: Number(stopped), at }).changes === 1,
    startedAll: (app_id: string, at: string) =>
      db
        .sql('UPDATE services SET stopped = 0, updated_at = ? WHERE app_id = ? AND stopped = 1')
        .run(at, app_id),
    move: (app_id: string, project_id: string) =>
      db.sql('UPDATE services SET project_id = ? WHERE app_id = ?').run(project_id, app_id),
  }
}
export type ServiceRepository = ReturnType<typeof createServiceRepository>
