import type { Db } from '#server/kernel/db'
import { forgetSome } from '#server/kernel/forget'
import { orderBy, type Page, type Span } from '#server/kernel/page'

/** A row of `variables`; `app_id` is null for those that a project shares. */
export interface VariableRow {
  id: string
  project_id: string
  app_id: string | null
  key: string
  value: string
  preview_value: string | null
  secret: number
  build: number
  runtime: number
  comment: string | null
  refs: string
  version: number
  created_at: string
  updated_at: string
}
/** A row of `variable_versions`. */
export interface VersionRow {
  project_id: string
  app_id: string | null
  key: string
  version: number
  action: 'created' | 'changed' | 'deleted'
  fields: string
  actor_id: string | null
  actor_name: string
  created_at: string
}
/** Whose variables: those of an app, or those that a project shares. */
export type Owner = { app_id: string } | { project_id: string }

const where = (owner: Owner): [clause: string, value: string] =>
  'app_id' in owner ? ['app_id = ?', owner.app_id] : ['project_id = ? AND app_id IS NULL', owner.project_id]

/** SQL of variables and nothing else. */
export function createVariableRepository(db: Db) {
  return {
    all(owner: Owner): VariableRow[] {
      const [clause, value] = where(owner)
      return db.sql(`SELECT * FROM variables WHERE ${clause} ORDER BY key`).all(value) as VariableRow[]
    },
    find(owner: Owner, key: string): VariableRow | undefined {
      const [clause, value] = where(owner)
      return db.sql(`SELECT * FROM variables WHERE ${clause} AND key = ?`).get(value, key) as
        | VariableRow
        | undefined
    },
    page(owner: Owner, q: string | undefined, ...[limit, offset, sort]: Span): Page<VariableRow> {
      const [clause, value] = where(owner)
      const matching = `FROM variables WHERE ${clause} AND instr(lower(key), lower(?)) > 0`
      return {
        rows: db
          .sql(`SELECT * ${matching} ${orderBy(sort, 'key')} LIMIT ? OFFSET ?`)
          .all(value, q ?? '', limit, offset) as VariableRow[],
        total: db
          .sql(`SELECT count(*) ${matching}`)
          .pluck()
          .get(value, q ?? '') as number,
      }
    },
    insert: (row: VariableRow) =>
      db
        .sql(
          `INSERT INTO variables (id, project_id, app_id, key, value, preview_value, secret, build, runtime, comment, refs, version, created_at, updated_at)
           VALUES (@id, @project_id, @app_id, @key, @value, @preview_value, @secret, @build, @runtime, @comment, @refs, @version, @created_at, @updated_at)`,
        )
        .run(row),
    update: (row: VariableRow) =>
      db
        .sql(
          `UPDATE variables SET value = @value, preview_value = @preview_value, secret = @secret, build = @build, runtime = @runtime,
           comment = @comment, refs = @refs, version = @version, updated_at = @updated_at WHERE id = @id`,
        )
        .run(row),
    delete: (ids: readonly string[]) =>
      db.sql('DELETE FROM variables WHERE id IN (SELECT value FROM json_each(?))').run(JSON.stringify(ids)),
    /** Versions of several keys that somebody made at once. */
    addVersions: (
      common: Omit<VersionRow, 'key' | 'version' | 'fields'>,
      each: readonly [key: string, version: number, fields: string][],
    ) =>
      db
        .sql(
          `INSERT INTO variable_versions (project_id, app_id, key, version, action, fields, actor_id, actor_name, created_at)
           SELECT @project_id, @app_id, value ->> 0, value ->> 1, @action, value ->> 2, @actor_id, @actor_name, @created_at
           FROM json_each(@each)`,
        )
        .run({ ...common, each: JSON.stringify(each) }),
    /** The newest versions of each of these keys, newest first; one question however many keys there are. */
    versions(owner: Owner, keys: readonly string[], limit: number): VersionRow[] {
      const [clause, value] = where(owner)
      return db
        .sql(
          `SELECT project_id, app_id, key, version, action, fields, actor_id, actor_name, created_at
           FROM (SELECT *, row_number() OVER (PARTITION BY key ORDER BY version DESC) AS place
                 FROM variable_versions WHERE ${clause} AND key IN (SELECT value FROM json_each(?)))
           WHERE place <= ? ORDER BY key, version DESC`,
        )
        .all(value, JSON.stringify(keys), limit) as VersionRow[]
    },
    /** Keys of the variables of an app that are secrets. */
    secretKeys: (app_id: string): Set<string> =>
      new Set(
        db.sql('SELECT key FROM variables WHERE app_id = ? AND secret = 1').pluck().all(app_id) as string[],
      ),
    /**
     * Keys of an app of which the platform made the value up (`SERVICE_PASSWORD_DB`), as it does for those that
     * a compose file asks for, and that nobody changed since.
     */
    madeUp(app_id: string): ReadonlySet<string> {
      const keys = db
        .sql(
          `SELECT key FROM variable_versions AS newest
           WHERE app_id = ? AND key GLOB 'SERVICE_*' AND action = 'created' AND actor_id IS NULL
           AND version = (SELECT max(version) FROM variable_versions
                          WHERE app_id = newest.app_id AND key = newest.key)`,
        )
        .pluck()
        .all(app_id)
      return new Set(keys as string[])
    },
    /** Forgets all but the newest versions of one key. */
    pruneVersions(owner: Owner, key: string, kept: number) {
      const [clause, value] = where(owner)
      db.sql(`DELETE FROM variable_versions WHERE ${clause} AND key = ? AND version <= ?`).run(
        value,
        key,
        kept,
      )
    },
    /** Forgets all but the newest versions of variables that an owner no longer has. */
    pruneGone(owner: Owner, kept: number): void {
      const [clause, value] = where(owner)
      db.sql(
        `DELETE FROM variable_versions WHERE rowid IN (SELECT rowid FROM variable_versions
           WHERE ${clause} AND key NOT IN (SELECT key FROM variables WHERE ${clause}) ORDER BY rowid DESC LIMIT -1 OFFSET ?)`,
      ).run(value, value, kept)
    },
    /** Forgets some of the versions of an app's variables; returns how many. */
    forgetVersions: (app_id: string): number =>
      forgetSome(db, { table: 'variable_versions', where: 'app_id = ?' }, app_id),
    /** The newest version of each of these keys that ever was. */
    lastVersions(owner: Owner, keys: readonly string[]): Map<string, number> {
      const [clause, value] = where(owner)
      const rows = db
        .sql(
          `SELECT key, max(version) AS version FROM variable_versions
           WHERE ${clause} AND key IN (SELECT value FROM json_each(?)) GROUP BY key`,
        )
        .all(value, JSON.stringify(keys)) as { key: string; version: number }[]
      return new Map(rows.map(({ key, version }) => [key, version]))
    },
    /** How many variables an owner has, and how long their sealed values are together. */
    size(owner: Owner): { count: number; bytes: number } {
      const [clause, value] = where(owner)
      return db
        .sql(
          `SELECT count(*) AS count, coalesce(sum(length(value)), 0) AS bytes FROM variables WHERE ${clause}`,
        )
        .get(value) as { count: number; bytes: number }
    },
    /** The newest place in the history of all variables. */
    newestVersion: () =>
      db.sql('SELECT coalesce(max(rowid), 0) FROM variable_versions').pluck().get() as number,
    /** Variables of apps that were written after a place in the history, with what they stand for. */
    changedSince: (project_id: string, place: number) =>
      db
        .sql(
          `SELECT DISTINCT variables.app_id, variables.key, refs FROM variable_versions AS versions
           JOIN variables ON variables.app_id = versions.app_id AND variables.key = versions.key
           WHERE versions.rowid > ? AND versions.project_id = ?`,
        )
        .all(place, project_id) as { app_id: string; key: string; refs: string }[],
    /** Whether what a project shares was changed after a place in the history. */
    sharedSince: (project_id: string, place: number): boolean =>
      db
        .sql('SELECT 1 FROM variable_versions WHERE rowid > ? AND project_id = ? AND app_id IS NULL LIMIT 1')
        .get(place, project_id) !== undefined,
    /** What the next variables of a project stand for, those of its apps and its own. */
    usesAfter: (project_id: string, place: number) =>
      db
        .sql(
          `SELECT rowid AS place, app_id, key, refs FROM variables WHERE project_id = ? AND rowid > ?
           ORDER BY rowid LIMIT 500`,
        )
        .all(project_id, place) as { place: number; app_id: string | null; key: string; refs: string }[],
  }
}
export type VariableRepository = ReturnType<typeof createVariableRepository>
