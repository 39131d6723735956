import * as v from 'valibot'
import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Config } from '#server/kernel/config'
import type { Db } from '#server/kernel/db'
import type { Events } from '#server/kernel/events'
import type { Log } from '#server/kernel/log'
import type { Secrets } from '#server/kernel/secrets'
import type { Mail } from '#server/platform/mail/mail'
import { createAccount } from './account.ts'
import { createApiKeys } from './api-keys.ts'
import { createAuthentication } from './authenticate.ts'
import { createClientAddress, edgeProof } from './client-address.ts'
import { createApiKeyRepository, createSessionRepository } from './credentials-repository.ts'
import { createCsrf } from './csrf.ts'
import { createInitialPassword } from './first-administrator.ts'
import { createLogin } from './login.ts'
import { createLoginLimit } from './login-limit.ts'
import { createTickets } from './one-time-tickets.ts'
import { type Cost, createPasswords } from './passwords.ts'
import { createPasswordReset } from './password-reset.ts'
import { createUserRepository } from './repository.ts'
import { createRevocations } from './revocations.ts'
import { createInvitations } from './invitations.ts'
import { createInvitationRepository, type ProjectGrant } from './invitations-repository.ts'
import { createNotices } from './notices.ts'
import { EmailAddress, type Me } from './schema.ts'
import { createSecondFactor } from './second-factor.ts'
import { createSessions } from './sessions.ts'
import { createTeam } from './team.ts'
import { createTokens } from './tokens.ts'
import { createTold } from './told.ts'
import { createTwoFactor } from './two-factor.ts'

export interface IdentityOptions {
  config: Config
  db: Db
  clock: Clock
  log: Log
  secrets: Secrets
  audit: AuditTrail
  events: Pick<Events, 'append'>
  /** What identity needs from projects. */
  projects: {
    rolesOf(user_id: string): ProjectGrant[]
    listFor(actor: Actor): Me['projects']
    projectOf(id: string): string | undefined
    members: {
      insert(
        actor: Actor,
        project_id: string,
        user: { id: string; email: string },
        role: ProjectGrant['role'],
      ): void
      requireOtherOwners(user_id: string): void
      takeOver(actor: Actor, user_id: string): void
    }
  }
  mail: Mail
  /** Name of the installation, and who may invite people. */
  settings(): { name: string; owners_may_invite: boolean }
  /** Where people reach the dashboard. */
  public_url(): string
  /** The same when somebody set it, undefined when it is made up from the address of this server. */
  chosen_url(): string | undefined
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
  const csrf = createCsrf(secrets.derive('csrf'), options.chosen_url)
  const tickets = createTickets(clock)
  const revocations = createRevocations(db)
  const told = createTold(options.events)
  const limit = createLoginLimit(clock)
  const two_factor = createTwoFactor({ clock, secrets, users })
  const initial_password = createInitialPassword({
    config,
    db,
    clock,
    log,
    audit,
    users,
    passwords,
  })
  const sessions = createSessions({
    db,
    clock,
    audit,
    users,
    sessions: session_rows,
    tokens,
    csrf,
    revocations,
    told,
  })
  const emit = createNotices({ db, mail: options.mail, log })
  const authentication = createAuthentication({
    clock,
    users,
    sessions: session_rows,
    keys,
    tokens,
    csrf,
    tickets,
    rolesOf: projects.rolesOf,
  })
  const invited = createInvitationRepository(db)
  const account = createAccount({
    db,
    clock,
    audit,
    users,
    sessions,
    passwords,
    two_factor,
    limit,
    revocations,
    told,
    initial_password,
    isInvited: (email) => invited.isOpen(email, clock.iso()),
    requireStanding: (actor) => void authentication.actorOf(actor, { address: actor.address, id: '' }),
    projectsOf: projects.listFor,
    tell: emit,
  })
  const invitations = createInvitations({
    db,
    clock,
    audit,
    users,
    invitations: invited,
    passwords,
    told,
    mail: options.mail,
    public_url: options.public_url,
    installation: () => options.settings().name,
    limit: createLoginLimit(clock, 'Too many attempts from this address to accept an invitation.'),
    hasProject: (id) => projects.projectOf(id) !== undefined,
    rolesOf: projects.rolesOf,
    owners_may_invite: () => options.settings().owners_may_invite,
    addToProject: ({ project_id, role }, user_id, actor) =>
      projects.members.insert(actor, project_id, { id: user_id, email: actor.email }, role),
  })
  const password_reset = createPasswordReset({
    db,
    clock,
    audit,
    users,
    sessions,
    passwords,
    revocations,
    limit: createLoginLimit(clock, 'Too many attempts from this address to reset a password.'),
    mail: options.mail,
    public_url: options.public_url,
    tell: emit,
  })
  return {
    ...authentication,
    client: createClientAddress(config.trusted_proxies, edgeProof(secrets)),
    login: createLogin({ clock, audit, users, sessions, passwords, limit, two_factor }),
    sessions,
    account,
    second_factor: createSecondFactor({
      db,
      clock,
      secrets,
      audit,
      users,
      sessions,
      account,
      two_factor,
      told,
      tell: emit,
    }),
    api_keys: createApiKeys({ db, clock, audit, keys, account, revocations, told }),
    invitations,
    password_reset,
    team: createTeam({
      db,
      clock,
      audit,
      users,
      keys,
      sessions,
      invitations,
      revocations,
      told,
      rolesOf: projects.rolesOf,
      requireOtherOwners: projects.members.requireOtherOwners,
      takeOver: projects.members.takeOver,
      tell: emit,
    }),
    tickets,
    revocations,
    /** What projects need to know of people. */
    people: {
      find({ user_id, email }: { user_id?: string; email?: string }) {
        const user = user_id === undefined ? users.findByEmail(email ?? '') : users.find(user_id)
        return user?.status === 'active' ? user : undefined
      },
      /**
       * Invites somebody who has no account, when owners of projects may. The invitation goes out by mail
       * only: its link is nobody else's.
       */
      async invite(actor: Actor, email: string, grant: ProjectGrant) {
        if (!options.settings().owners_may_invite || !v.is(EmailAddress, email)) return undefined
        return invitations.createByOwner(actor, email, grant)
      },
      rightsChanged(actor: Actor, user_id: string) {
        invitations.endVoid(actor, user_id)
        revocations.announce({ kind: 'user', user_id })
      },
    },
    ensureAdministrator: initial_password.ensure,
    /** How to get in, while nobody has set this installation up yet. */
    firstRun: initial_password.pending,
    /** Forgets sessions and invitations that have expired; returns how many. */
    prune: () => sessions.prune() + invitations.prune() + password_reset.prune(),
  }
}
export type Identity = ReturnType<typeof createIdentity>
