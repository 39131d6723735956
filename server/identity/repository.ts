import type { PlatformRole } from '#server/kernel/access'
import type { Db } from '#server/kernel/db'
import { orderBy, type Page, type Wanted, wantedJson, type Span } from '#server/kernel/page'

/** A row of `users`. */
export interface UserRow {
  id: string
  email: string
  name: string
  role: PlatformRole
  status: 'active' | 'disabled'
  password_hash: string
  password_stale: number
  totp_seed: string | null
  totp_pending: string | null
  totp_step: number
  preferences: string
  created_at: string
  updated_at: string
  last_login_at: string | null
}
/** Columns that a change may name; keys come from the code only. */
export type UserChange = Partial<
  Pick<
    UserRow,
    | 'email'
    | 'name'
    | 'role'
    | 'status'
    | 'password_hash'
    | 'password_stale'
    | 'totp_seed'
    | 'totp_pending'
    | 'totp_step'
    | 'preferences'
    | 'last_login_at'
  >
>
const CHANGEABLE = [
  'email',
  'name',
  'role',
  'status',
  'password_hash',
  'password_stale',
  'totp_seed',
  'totp_pending',
  'totp_step',
  'preferences',
  'last_login_at',
] as const

/** SQL of users and their recovery codes. */
export function createUserRepository(db: Db) {
  return {
    insert: (
      row: Pick<
        UserRow,
        'id' | 'email' | 'name' | 'role' | 'password_hash' | 'password_stale' | 'created_at'
      >,
    ) =>
      db
        .sql(
          `INSERT INTO users (id, email, name, role, password_hash, password_stale, created_at, updated_at)
       VALUES (@id, @email, @name, @role, @password_hash, @password_stale, @created_at, @created_at)`,
        )
        .run(row),
    find: (id: string) => db.sql('SELECT * FROM users WHERE id = ?').get(id) as UserRow | undefined,
    findByEmail: (email: string) =>
      db.sql('SELECT * FROM users WHERE email = ?').get(email) as UserRow | undefined,
    isEmpty: () => db.sql('SELECT 1 FROM users LIMIT 1').pluck().get() === undefined,
    page(
      filter: { q?: string; role?: Wanted; status?: Wanted },
      ...[limit, offset, sort]: Span
    ): Page<UserRow> {
      const clause = `(@q IS NULL OR instr(email, lower(@q)) > 0 OR instr(lower(name), lower(@q)) > 0) AND (@role IS NULL OR role IN (SELECT value FROM json_each(@role))) AND (@status IS NULL OR status IN (SELECT value FROM json_each(@status)))`
      const values = {
        q: filter.q ?? null,
        role: wantedJson(filter.role),
        status: wantedJson(filter.status),
      }
      const rows = db
        .sql(`SELECT * FROM users WHERE ${clause} ${orderBy(sort, 'rowid DESC')} LIMIT @limit OFFSET @offset`)
        .all({ ...values, limit, offset }) as UserRow[]
      return {
        rows,
        total: db.sql(`SELECT count(*) FROM users WHERE ${clause}`).pluck().get(values) as number,
      }
    },
    update(id: string, change: UserChange, at: string) {
      const keys = CHANGEABLE.filter((key) => change[key] !== undefined)
      db.sql(
        `UPDATE users SET ${keys.map((key) => `${key} = @${key}, `).join('')}updated_at = @at WHERE id = @id`,
      ).run({ ...change, id, at })
      // A link that sets a password was made for this password, this address and an open account.
      if (change.password_hash ?? change.email ?? change.status)
        db.sql('DELETE FROM password_resets WHERE user_id = ?').run(id)
    },
    /**
     * Whether what somebody has proven is still what is asked of the user. Proving takes a while, and meanwhile
     * the password may have been changed, a second factor asked for, or the account closed.
     */
    isAsProven({ id, password_hash, totp_seed }: UserRow): boolean {
      const now = db.sql('SELECT * FROM users WHERE id = ?').get(id) as UserRow | undefined
      return now?.status === 'active' && now.password_hash === password_hash && now.totp_seed === totp_seed
    },
    delete: (id: string) => db.sql('DELETE FROM users WHERE id = ?').run(id),
    /** Administrators who can still act, besides one user. */
    otherAdministrators: (id: string) =>
      db
        .sql(`SELECT count(*) FROM users WHERE role = 'admin' AND status = 'active' AND id <> ?`)
        .pluck()
        .get(id) as number,
    /** Uses up a time step; false when it, or a later one, has been used before. */
    takeTotpStep: (id: string, step: number): boolean =>
      db.sql('UPDATE users SET totp_step = ? WHERE id = ? AND totp_step < ?').run(step, id, step).changes ===
      1,
    replaceRecoveryCodes(user_id: string, hashes: readonly string[]) {
      db.sql('DELETE FROM recovery_codes WHERE user_id = ?').run(user_id)
      for (const hash of hashes)
        db.sql('INSERT INTO recovery_codes (user_id, code_hash) VALUES (?, ?)').run(user_id, hash)
    },
    /** Uses up a recovery code; false when it is unknown or used. */
    takeRecoveryCode: (user_id: string, hash: string): boolean =>
      db.sql('DELETE FROM recovery_codes WHERE user_id = ? AND code_hash = ?').run(user_id, hash).changes ===
      1,
    recoveryCodesLeft: (user_id: string) =>
      db.sql('SELECT count(*) FROM recovery_codes WHERE user_id = ?').pluck().get(user_id) as number,
  }
}
export type UserRepository = ReturnType<typeof createUserRepository>
