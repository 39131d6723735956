import { randomBytes } from 'node:crypto'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PLATFORM } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import { type Config, DEFAULT_ADMIN_EMAIL } from '#server/kernel/config'
import type { Db } from '#server/kernel/db'
import { newId } from '#server/kernel/ids'
import type { Log } from '#server/kernel/log'
import { createMeta } from '#server/kernel/meta'
import type { Passwords } from './passwords.ts'
import type { UserRepository } from './repository.ts'

/** How somebody gets into an installation that nobody has entered yet. */
export interface FirstRun {
  /** Where the generated password stands on the server. */
  password_file: string
  /** Who it belongs to; left out when the operator chose the address, which is nobody else's business. */
  email?: string
}
/** The generated first password, for as long as it is in use. */
export interface InitialPassword {
  /** Creates the first administrator of an empty installation; does nothing on any later start. */
  ensure(): Promise<void>
  /** While the first administrator still has the generated password: nobody has set this up yet. */
  pending(): FirstRun | undefined
  /** Removes the file once its owner has a password of their own. */
  forget(user_id: string): void
}

const FILE = 'initial-admin-password'
const OWNER = 'first_administrator'

export interface InitialPasswordParts {
  config: Config
  db: Db
  clock: Clock
  log: Log
  audit: AuditTrail
  users: UserRepository
  passwords: Passwords
}

/**
 * The first administrator: with the password of the environment, else with a random one that must be changed.
 */
export function createInitialPassword({
  config,
  db,
  clock,
  log,
  audit,
  users,
  passwords,
}: InitialPasswordParts): InitialPassword {
  const path = join(config.data_directory, FILE)
  const meta = createMeta(db)
  return {
    async ensure() {
      if (!users.isEmpty()) return
      const generated = config.admin_password === undefined
      const password = config.admin_password ?? randomBytes(18).toString('base64url')
      const email = config.admin_email.toLowerCase()
      const password_hash = await passwords.hash(password)
      // Before the row: a crash between the two leaves a file that the next start overwrites, never an
      // account nobody can enter.
      if (generated) {
        rmSync(path, { force: true })
        writeFileSync(path, `${password}\n`, { mode: 0o600, flag: 'wx', flush: true })
      }
      db.tx(() => {
        if (!users.isEmpty()) return
        const id = newId('usr')
        users.insert({
          id,
          email,
          name: 'Administrator',
          role: 'admin',
          password_hash,
          password_stale: generated ? 1 : 0,
          created_at: clock.iso(),
        })
        meta.set(OWNER, id)
        audit.record(PLATFORM, {
          action: 'user.create',
          resource_type: 'user',
          resource_id: id,
          project_id: null,
          after: { email, role: 'admin' },
        })
      })
      if (generated)
        log.info('The first administrator was created. Log in, then change this password', {
          email,
          password,
          kept_in: path,
        })
      else
        log.info('The first administrator was created with the password of PORTREEVE_ADMIN_PASSWORD', {
          email,
        })
    },
    pending() {
      const owner = meta.get(OWNER)
      // A password that was reset later is stale as well; only the generated first one is in the file.
      const user = owner === undefined ? undefined : users.find(owner)
      if (user?.password_stale !== 1 || !existsSync(path)) return undefined
      return {
        password_file: path,
        ...(user.email === DEFAULT_ADMIN_EMAIL ? { email: user.email } : {}),
      }
    },
    forget(user_id) {
      const owner = meta.get(OWNER)
      if (owner === user_id) rmSync(path, { force: true })
    },
  }
}
