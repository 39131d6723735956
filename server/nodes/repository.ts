import type { Db } from '#server/kernel/db'
import { selectPage, type Wanted, type Span } from '#server/kernel/page'
import type { NodeStateName } from './schema.ts'

export interface NodeRow {
  id: string
  name: string
  state: NodeStateName
  /** A JSON object of texts. */
  labels: string
  checked_at: string
  last_seen_at: string | null
  created_at: string
  updated_at: string
}

/** SQL of nodes and nothing else. */
export function createNodeRepository(db: Db) {
  return {
    insert: (row: NodeRow) =>
      db
        .sql(
          `INSERT INTO nodes (id, name, state, labels, checked_at, last_seen_at, created_at, updated_at)
       VALUES (@id, @name, @state, @labels, @checked_at, @last_seen_at, @created_at, @updated_at)`,
        )
        .run(row),
    find: (id: string) => db.sql('SELECT * FROM nodes WHERE id = ?').get(id) as NodeRow | undefined,
    /** The server of Portreeve itself, which is the first that was ever made. */
    own: () => db.sql('SELECT * FROM nodes ORDER BY rowid LIMIT 1').get() as NodeRow | undefined,
    list: (state: Wanted, ...span: Span) =>
      selectPage<NodeRow>(
        db,
        {
          table: 'nodes',
          project_ids: undefined,
          equals: { state },
        },
        span,
      ),
    update: (row: NodeRow) =>
      db
        .sql(
          `UPDATE nodes SET name = @name, state = @state, labels = @labels, checked_at = @checked_at,
             last_seen_at = @last_seen_at, updated_at = @updated_at WHERE id = @id`,
        )
        .run(row),
  }
}
