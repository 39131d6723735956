import type { Addresses } from '#server/addresses/service'
import { ACCOUNT_EVENTS, PERSONAL_EVENTS } from '#server/kernel/event-types'
import { defineModule, sealedById } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import type { Mail } from '#server/platform/mail/mail'
import { edgeProof } from './client-address.ts'
import { createIdentity, type IdentityOptions } from './service.ts'

export default defineModule({
  name: 'identity',
  tags: [
    { name: 'auth', description: 'Log in with a password, keep sessions, make API keys.' },
    { name: 'team', description: 'Users of the installation and their roles.' },
  ],
  sealed: [sealedById('users', 'totp_seed'), sealedById('users', 'totp_pending')],
  create: (
    base: Base,
    use: {
      addresses: Addresses
      projects: IdentityOptions['projects']
      settings: { mail: Mail; server: IdentityOptions['settings'] }
    },
  ) => ({
    ...createIdentity({
      ...base,
      projects: use.projects,
      mail: use.settings.mail,
      public_url: () => use.addresses.public_url(),
      chosen_url: () => use.addresses.chosen_url(),
      settings: () => use.settings.server(),
    }),
    /** What the edge sends along, so that it is known from everybody else on this machine. */
    edge_proof: edgeProof(base.secrets),
  }),
  channels: () => [
    {
      name: 'account',
      kind: 'events',
      access: 'self',
      // A key that is limited to projects learns of no others.
      events: (_id, { user_id, only_projects }) => ({
        user_id,
        types: only_projects ? PERSONAL_EVENTS : [...PERSONAL_EVENTS, ...ACCOUNT_EVENTS],
      }),
    },
  ],
  retention: { sessions: (own) => own.prune() },
  start: (own) => own.ensureAdministrator(),
})
