import type { ProjectRole } from '#server/kernel/access'
import type { Db } from '#server/kernel/db'
import { orderBy, type Page, type Span } from '#server/kernel/page'

/** A row of `projects`; `quotas` is JSON. */
export interface ProjectRow {
  id: string
  name: string
  description: string
  is_default: number
  quotas: string
  created_at: string
  updated_at: string
}
export interface MemberRow {
  project_id: string
  user_id: string
  role: ProjectRole
  created_at: string
  email: string
  name: string
}

const SEEN = '(@ids IS NULL OR id IN (SELECT value FROM json_each(@ids)))'
const list = (ids: readonly string[] | undefined) => (ids ? JSON.stringify(ids) : null)

/**
 * SQL of projects and their members. Lists take the projects that the caller may see; undefined means all.
 */
export function createProjectRepository(db: Db) {
  return {
    insert: (row: ProjectRow) =>
      db
        .sql(
          'INSERT INTO projects (id, name, description, is_default, quotas, created_at, updated_at) VALUES (@id, @name, @description, @is_default, @quotas, @created_at, @updated_at)',
        )
        .run(row),
    all: () => db.sql('SELECT * FROM projects').all() as ProjectRow[],
    find: (id: string) => db.sql('SELECT * FROM projects WHERE id = ?').get(id) as ProjectRow | undefined,
    /** Whether there are projects beside this one. */
    hasOthers: (id: string) => db.sql('SELECT 1 FROM projects WHERE id <> ? LIMIT 1').get(id) !== undefined,
    exists: (id: string) => db.sql('SELECT 1 FROM projects WHERE id = ?').pluck().get(id) === 1,
    default: () => db.sql('SELECT id FROM projects WHERE is_default = 1').pluck().get() as string | undefined,
    page(
      ids: readonly string[] | undefined,
      q: string | undefined,
      ...[limit, offset, sort]: Span
    ): Page<ProjectRow> {
      const clause = `${SEEN} AND (@q IS NULL OR instr(lower(name), lower(@q)) > 0)`
      const values = { ids: list(ids), q: q ?? null }
      const rows = db
        .sql(
          `SELECT * FROM projects WHERE ${clause} ${orderBy(sort, 'rowid DESC')} LIMIT @limit OFFSET @offset`,
        )
        .all({ ...values, limit, offset }) as ProjectRow[]
      return {
        rows,
        total: db.sql(`SELECT count(*) FROM projects WHERE ${clause}`).pluck().get(values) as number,
      }
    },
    /** Whether one of the projects that the caller may see has this name, whatever its case. */
    hasName: (ids: readonly string[] | undefined, name: string, except: string) =>
      db
        .sql(`SELECT 1 FROM projects WHERE ${SEEN} AND lower(name) = lower(@name) AND id <> @except`)
        .pluck()
        .get({ ids: list(ids), name, except }) === 1,
    update: (row: Pick<ProjectRow, 'id' | 'name' | 'description' | 'quotas' | 'updated_at'>) =>
      db
        .sql(
          'UPDATE projects SET name = @name, description = @description, quotas = @quotas, updated_at = @updated_at WHERE id = @id',
        )
        .run(row),
    delete: (id: string) => db.sql('DELETE FROM projects WHERE id = ?').run(id),

    members: (project_id: string, ...[limit, offset, sort]: Span): Page<MemberRow> => ({
      rows: db
        .sql(`SELECT m.*, u.email, u.name FROM project_members m JOIN people u ON u.id = m.user_id
                    WHERE m.project_id = ? ${orderBy(sort, 'm.created_at DESC, m.user_id')} LIMIT ? OFFSET ?`)
        .all(project_id, limit, offset) as MemberRow[],
      total: db
        .sql('SELECT count(*) FROM project_members WHERE project_id = ?')
        .pluck()
        .get(project_id) as number,
    }),
    member: (project_id: string, user_id: string) =>
      db
        .sql(
          'SELECT m.*, u.email, u.name FROM project_members m JOIN people u ON u.id = m.user_id WHERE m.project_id = ? AND m.user_id = ?',
        )
        .get(project_id, user_id) as MemberRow | undefined,
    rolesOf: (user_id: string) =>
      db.sql('SELECT project_id, role FROM project_members WHERE user_id = ?').all(user_id) as {
        project_id: string
        role: ProjectRole
      }[],
    addMember: (project_id: string, user_id: string, role: ProjectRole, at: string) =>
      db
        .sql('INSERT INTO project_members (project_id, user_id, role, created_at) VALUES (?, ?, ?, ?)')
        .run(project_id, user_id, role, at),
    setRole: (project_id: string, user_id: string, role: ProjectRole) =>
      db
        .sql('UPDATE project_members SET role = ? WHERE project_id = ? AND user_id = ?')
        .run(role, project_id, user_id),
    removeMember: (project_id: string, user_id: string) =>
      db.sql('DELETE FROM project_members WHERE project_id = ? AND user_id = ?').run(project_id, user_id),
    /** Owners of a project who can still act, besides one user. */
    otherOwners: (project_id: string, user_id: string) =>
      db
        .sql(
          `SELECT count(*) FROM project_members m JOIN people u ON u.id = m.user_id
       WHERE m.project_id = ? AND m.user_id <> ? AND m.role = 'owner' AND u.can_act`,
        )
        .pluck()
        .get(project_id, user_id) as number,
    /**
     * Projects, besides the default one, that would be left without an owner who can act if this user were
     * gone.
     */
    onlyOwnedBy: (user_id: string) =>
      db
        .sql(
          `SELECT p.id, p.name FROM project_members m JOIN projects p ON p.id = m.project_id
       WHERE m.user_id = @user_id AND m.role = 'owner' AND p.is_default = 0 AND NOT EXISTS (
         SELECT 1 FROM project_members o JOIN people u ON u.id = o.user_id
         WHERE o.project_id = m.project_id AND o.user_id <> @user_id AND o.role = 'owner' AND u.can_act)
       ORDER BY p.name`,
        )
        .all({ user_id }) as { id: string; name: string }[],
    memberIds: (project_id: string) =>
      db.sql('SELECT user_id FROM project_members WHERE project_id = ?').pluck().all(project_id) as string[],
  }
}
export type ProjectRepository = ReturnType<typeof createProjectRepository>
