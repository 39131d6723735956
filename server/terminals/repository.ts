import type { Db } from '#server/kernel/db'

/** An open terminal. */
export interface TerminalRow {
  id: string
  noun: 'app' | 'database'
  resource_id: string
  project_id: string
  /** Engine id of the container. */
  instance_id: string
  user_id: string
  started_at: string
}

export const createTerminalRepository = (db: Db) => ({
  insert: (row: TerminalRow): void =>
    void db
      .sql(
        'INSERT INTO terminals VALUES (@id, @noun, @resource_id, @project_id, @instance_id, @user_id, @started_at)',
      )
      .run(row),
  remove: (id: string): void => void db.sql('DELETE FROM terminals WHERE id = ?').run(id),
  all: (): TerminalRow[] => db.sql('SELECT * FROM terminals ORDER BY started_at').all() as TerminalRow[],
})
