import type { Db } from '#server/kernel/db'
import { forgetSome } from '#server/kernel/forget'
import { orderBy, type Page, type Span } from '#server/kernel/page'

/** A row of `sessions`. */
export interface SessionRow {
  id: string
  user_id: string
  cookie_hash: string
  token_version: number
  refreshed_at: string | null
  address: string
  user_agent: string
  created_at: string
  last_used_at: string
  expires_at: string
}
/** A row of `api_keys`; lists are JSON, null means no limit. */
export interface ApiKeyRow {
  id: string
  user_id: string
  name: string
  secret_hash: string
  scope: 'full' | 'read' | 'deploy'
  project_ids: string | null
  addresses: string | null
  expires_at: string | null
  created_at: string
  last_used_at: string | null
  last_used_address: string | null
}

/** SQL of sessions. */
export function createSessionRepository(db: Db) {
  return {
    insert: (row: SessionRow) =>
      db
        .sql(
          `INSERT INTO sessions (id, user_id, cookie_hash, token_version, refreshed_at, address, user_agent, created_at, last_used_at, expires_at)
       VALUES (@id, @user_id, @cookie_hash, @token_version, @refreshed_at, @address, @user_agent, @created_at, @last_used_at, @expires_at)`,
        )
        .run(row),
    find: (id: string) => db.sql('SELECT * FROM sessions WHERE id = ?').get(id) as SessionRow | undefined,
    findByCookie: (cookie_hash: string) =>
      db.sql('SELECT * FROM sessions WHERE cookie_hash = ?').get(cookie_hash) as SessionRow | undefined,
    page: (user_id: string, now: string, ...[limit, offset, sort]: Span): Page<SessionRow> => ({
      rows: db
        .sql(
          `SELECT * FROM sessions WHERE user_id = ? AND expires_at > ? ${orderBy(sort, 'rowid DESC')} LIMIT ? OFFSET ?`,
        )
        .all(user_id, now, limit, offset) as SessionRow[],
      total: db
        .sql('SELECT count(*) FROM sessions WHERE user_id = ? AND expires_at > ?')
        .pluck()
        .get(user_id, now) as number,
    }),
    /** Where the user's sessions began, of those that have not ended. */
    addressesOf: (user_id: string): string[] =>
      db
        .sql('SELECT DISTINCT address FROM sessions WHERE user_id = ? LIMIT 200')
        .pluck()
        .all(user_id) as string[],
    touch: (id: string, at: string) =>
      db.note(() => void db.sql('UPDATE sessions SET last_used_at = ? WHERE id = ?').run(at, id)),
    /** Moves to the next version of the token; false when another refresh was faster. */
    refresh: (id: string, from: number, at: string, expires_at: string): boolean =>
      db
        .sql(
          'UPDATE sessions SET token_version = token_version + 1, refreshed_at = ?, expires_at = ? WHERE id = ? AND token_version = ?',
        )
        .run(at, expires_at, id, from).changes === 1,
    delete: (id: string) => db.sql('DELETE FROM sessions WHERE id = ?').run(id),
    /** Ends the sessions of a user besides one (none: all); returns their ids. */
    deleteOthers: (user_id: string, keep: string) =>
      db
        .sql('DELETE FROM sessions WHERE user_id = ? AND id <> ? RETURNING id')
        .pluck()
        .all(user_id, keep) as string[],
    /** Ends the oldest sessions of a user beyond a number; returns their ids. */
    deleteBeyond: (user_id: string, number: number) =>
      db
        .sql(
          'DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE user_id = ? ORDER BY rowid DESC LIMIT -1 OFFSET ?) RETURNING id',
        )
        .pluck()
        .all(user_id, number) as string[],
    prune: (now: string) => forgetSome(db, { table: 'sessions', where: 'expires_at <= ?' }, now),
  }
}
export type SessionRepository = ReturnType<typeof createSessionRepository>

/** SQL of API keys. */
export function createApiKeyRepository(db: Db) {
  return {
    insert: (row: ApiKeyRow) =>
      db
        .sql(
          `INSERT INTO api_keys (id, user_id, name, secret_hash, scope, project_ids, addresses, expires_at, created_at, last_used_at, last_used_address)
       VALUES (@id, @user_id, @name, @secret_hash, @scope, @project_ids, @addresses, @expires_at, @created_at, @last_used_at, @last_used_address)`,
        )
        .run(row),
    find: (id: string) => db.sql('SELECT * FROM api_keys WHERE id = ?').get(id) as ApiKeyRow | undefined,
    page: (user_id: string, ...[limit, offset, sort]: Span): Page<ApiKeyRow> => ({
      rows: db
        .sql(`SELECT * FROM api_keys WHERE user_id = ? ${orderBy(sort, 'rowid DESC')} LIMIT ? OFFSET ?`)
        .all(user_id, limit, offset) as ApiKeyRow[],
      total: db.sql('SELECT count(*) FROM api_keys WHERE user_id = ?').pluck().get(user_id) as number,
    }),
    count: (user_id: string) =>
      db.sql('SELECT count(*) FROM api_keys WHERE user_id = ?').pluck().get(user_id) as number,
    touch: (id: string, at: string, address: string) =>
      db.note(
        () =>
          void db
            .sql('UPDATE api_keys SET last_used_at = ?, last_used_address = ? WHERE id = ?')
            .run(at, address, id),
      ),
    delete: (id: string) => db.sql('DELETE FROM api_keys WHERE id = ?').run(id),
    idsOf: (user_id: string) =>
      db.sql('SELECT id FROM api_keys WHERE user_id = ?').pluck().all(user_id) as string[],
  }
}
export type ApiKeyRepository = ReturnType<typeof createApiKeyRepository>
