import { createMachine } from '#server/kernel/machine'
import type { CertificateStatus } from './schema.ts'

/**
 * `install`: there is a chain with its key; `keep`: an attempt failed while the old one is still good; `wait`: the
 * budget has no room for it yet.
 */
export type CertificateEvent = 'issue' | 'install' | 'keep' | 'wait' | 'fail' | 'expire' | 'revoke'

/** The life of a certificate; architecture.md shows it. */
export const certificateMachine = createMachine<CertificateStatus, CertificateEvent>('a certificate', {
  pending: { issue: 'issuing', install: 'active', fail: 'failed' },
  issuing: { install: 'active', keep: 'active', wait: 'pending', fail: 'failed', expire: 'expired' },
  active: { issue: 'issuing', install: 'active', expire: 'expired', revoke: 'revoked' },
  failed: { issue: 'issuing', install: 'active' },
  expired: { issue: 'issuing', install: 'active' },
  revoked: {},
})
