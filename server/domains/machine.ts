import { createMachine } from '#server/kernel/machine'
import type { DomainStatus } from './schema.ts'

/**
 * What happens to a domain. `verify`: DNS proves it; `serve`: the edge has its route; `give_up`: no proof
 * came in time.
 */
export type DomainEventName = 'verify' | 'serve' | 'give_up'

/** A domain that is proven stays so: when its records change later, its owner is told, and it serves on. */
export const domainMachine = createMachine<DomainStatus, DomainEventName>('a domain', {
  pending: { verify: 'verified', give_up: 'failed' },
  verified: { verify: 'verified', serve: 'active' },
  active: { verify: 'active', serve: 'active' },
  failed: { verify: 'verified', give_up: 'failed' },
})
