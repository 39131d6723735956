import type { PlatformRole, ProjectRole } from '#server/kernel/access'
import type { Db } from '#server/kernel/db'
import { forgetSome } from '#server/kernel/forget'

/** A row of `invitations`; `projects` is a JSON list. */
export interface InvitationRow {
  id: string
  email: string
  role: PlatformRole
  projects: string
  token_hash: string
  invited_by: string
  created_at: string
  expires_at: string
}
export interface ProjectGrant {
  project_id: string
  role: ProjectRole
}

/** SQL of invitations. */
export function createInvitationRepository(db: Db) {
  return {
    /** An address has one invitation: a new one ends the old. */
    replace: (row: InvitationRow) => {
      db.sql('DELETE FROM invitations WHERE email = ?').run(row.email)
      db.sql(`INSERT INTO invitations (id, email, role, projects, token_hash, invited_by, created_at, expires_at)
              VALUES (@id, @email, @role, @projects, @token_hash, @invited_by, @created_at, @expires_at)`).run(
        row,
      )
    },
    idOf: (email: string) =>
      db.sql('SELECT id FROM invitations WHERE email = ?').pluck().get(email) as string | undefined,
    find: (id: string) =>
      db.sql('SELECT * FROM invitations WHERE id = ?').get(id) as InvitationRow | undefined,
    findByToken: (token_hash: string) =>
      db.sql('SELECT * FROM invitations WHERE token_hash = ?').get(token_hash) as InvitationRow | undefined,
    /** Uses an invitation up; false when it is gone. */
    take: (id: string): boolean => db.sql('DELETE FROM invitations WHERE id = ?').run(id).changes === 1,
    isOpen: (email: string, now: string): boolean =>
      db.sql('SELECT 1 FROM invitations WHERE email = ? AND expires_at > ?').get(email, now) !== undefined,
    open: (now: string) =>
      db
        .sql('SELECT * FROM invitations WHERE expires_at > ? ORDER BY rowid DESC')
        .all(now) as InvitationRow[],
    openOf: (invited_by: string, now: string) =>
      db
        .sql('SELECT * FROM invitations WHERE invited_by = ? AND expires_at > ?')
        .all(invited_by, now) as InvitationRow[],
    prune: (now: string) => forgetSome(db, { table: 'invitations', where: 'expires_at <= ?' }, now),
  }
}
export type InvitationRepository = ReturnType<typeof createInvitationRepository>
