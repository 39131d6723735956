import type { Actor, ProjectRole } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Config } from '#server/kernel/config'
import type { Db } from '#server/kernel/db'
import type { Log } from '#server/kernel/log'
import type { Secrets } from '#server/kernel/secrets'
import { createAccount } from './account.ts'
import { createApiKeys } from './api-keys.ts'
import { createAuthentication } from './authenticate.ts'
import { createClientAddress } from './client-address.ts'
import { createApiKeyRepository, createSessionRepository } from './credentials-repository.ts'
import { createCsrf } from './csrf.ts'
import { createInitialPassword } from './first-administrator.ts'
import { createLogin } from './login.ts'
import { createLoginLimit } from './login-limit.ts'
import { createTickets } from './one-time-tickets.ts'
import { type Cost, createPasswords } from './passwords.ts'
import { createUserRepository } from './repository.ts'
import { createRevocations } from './revocations.ts'
import type { Me } from './schema.ts'
import { createSessions } from './sessions.ts'
import { createTokens } from './tokens.ts'
import { createTwoFactor } from './two-factor.ts'

export interface IdentityOptions {
  config: Config
  db: Db
  clock: Clock
  log: Log
  secrets: Secrets
  audit: AuditTrail
  /** What identity needs from projects. */
  projects: {
    rolesOf(user_id: string): { project_id: string; role: ProjectRole }[]
    listFor(actor: Actor): Me['projects']
  }
  /** Cost of password hashes; tests of other things lower it. */
  password_cost?: Cost
}

/** People and how they prove who they are. */
export function createIdentity(options: IdentityOptions) {
  const { config, db, clock, log, secrets, audit, projects } = options
  const users = createUserRepository(db)
  const session_rows = createSessionRepository(db)
  const keys = createApiKeyRepository(db)
  const passwords = createPasswords(options.password_cost)
  const tokens = createTokens(secrets.derive('jwt'), clock)
  const csrf = createCsrf(secrets.derive('csrf'), config.public_url)
  const tickets = createTickets(clock)
  const revocations = createRevocations(db)
  const limit = createLoginLimit(clock)
  const two_factor = createTwoFactor({ clock, secrets, users })
  const initial_password = createInitialPassword({ config, db, clock, log, audit, users, passwords })
  const sessions = createSessions({ db, clock, audit, users, sessions: session_rows, tokens, csrf, revocations })
  const account = createAccount({
    db, clock, audit, users, sessions, passwords, two_factor, limit, revocations, initial_password,
    projectsOf: projects.listFor, tell: () => undefined,
  })
  return {
    ...createAuthentication({ clock, users, sessions: session_rows, keys, tokens, csrf, tickets, rolesOf: projects.rolesOf }),
    client: createClientAddress(config.trusted_proxies),
    login: createLogin({ clock, audit, users, sessions, passwords, limit, two_factor }),
    sessions,
    account,
    api_keys: createApiKeys({ db, clock, audit, keys, account, revocations }),
    tickets,
    revocations,
    ensureAdministrator: initial_password.ensure,
  }
}
export type Identity = ReturnType<typeof createIdentity>
