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
  /** Null for the server of Portreeve itself, as all that follows of how it is logged in to. */
  address: string | null
  ssh_port: number | null
  ssh_user: string | null
  ssh_key_id: string | null
  host_key: string | null
  availability: 'active' | 'drain'
  last_error: string | null
  /** A `NodeReading` as JSON. */
  reading: string | null
  silent_since: string | null
  joined_at: string | null
}
/** A server that was added, with how it is logged in to. */
export interface AddedRow extends NodeRow {
  address: string
  ssh_port: number
  ssh_user: string
  ssh_key_id: string
  host_key: string
}
export const isAdded = (row: NodeRow): row is AddedRow => row.address !== null

const COLUMNS = [
  'id',
  'name',
  'state',
  'labels',
  'checked_at',
  'last_seen_at',
  'created_at',
  'updated_at',
  'address',
  'ssh_port',
  'ssh_user',
  'ssh_key_id',
  'host_key',
  'availability',
  'last_error',
  'reading',
  'silent_since',
  'joined_at',
] as const

/** SQL of nodes and nothing else. */
export function createNodeRepository(db: Db) {
  return {
    insert: (row: NodeRow) =>
      db
        .sql(
          `INSERT INTO nodes (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map((name) => `@${name}`).join(', ')})`,
        )
        .run(row),
    find: (id: string) => db.sql('SELECT * FROM nodes WHERE id = ?').get(id) as NodeRow | undefined,
    findByName: (name: string) =>
      db.sql('SELECT * FROM nodes WHERE name = ?').get(name) as NodeRow | undefined,
    findByAddress: (address: string) =>
      db.sql('SELECT * FROM nodes WHERE address = ?').get(address) as AddedRow | undefined,
    /** The server of Portreeve itself. */
    own: () => db.sql('SELECT * FROM nodes WHERE address IS NULL').get() as NodeRow | undefined,
    /** Those that were added, the oldest first. */
    added: () => db.sql('SELECT * FROM nodes WHERE address IS NOT NULL ORDER BY rowid').all() as AddedRow[],
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
          `UPDATE nodes SET ${COLUMNS.slice(1)
            .map((name) => `${name} = @${name}`)
            .join(', ')} WHERE id = @id`,
        )
        .run(row),
    delete: (id: string) => db.sql('DELETE FROM nodes WHERE id = ?').run(id),
  }
}
export type NodeRepository = ReturnType<typeof createNodeRepository>
