import { createHash, randomBytes } from 'node:crypto'
import type { Actor } from '#server/kernel/access'
import type { Clock } from '#server/kernel/clock'

/** Proof that opened the ticket, to be checked again when it is used. */
export type TicketHolder = Pick<Actor, 'user_id' | 'method' | 'credential_id'>

export interface Tickets {
  issue(holder: TicketHolder): { ticket: string; expires_at: string }
  /** The holder, once; undefined for a ticket that is unknown, used or too old. */
  redeem(ticket: string): TicketHolder | undefined
}

/** Long enough to open a connection, short enough to be worthless in a log. */
const LIFETIME_MS = 30_000
const OPEN_AT_ONCE = 10_000
/** Of one user: who makes more loses the oldest of their own, and nobody else's. */
const OPEN_OF_ONE = 50
const hashOf = (ticket: string) => createHash('sha256').update(ticket).digest('base64url')

/**
 * Tickets that open one WebSocket, so that no lasting secret appears in an address. Kept in memory: a restart
 * ends them.
 */
export function createTickets(clock: Clock): Tickets {
  const open = new Map<string, { holder: TicketHolder; until_ms: number }>()
  /** Keys of the tickets of each user, the oldest first. */
  const owned = new Map<string, Set<string>>()
  const take = (key: string) => {
    const found = open.get(key)
    if (!found) return undefined
    open.delete(key)
    const own = owned.get(found.holder.user_id)
    own?.delete(key)
    if (own?.size === 0) owned.delete(found.holder.user_id)
    return found
  }
  const sweep = () => {
    for (const [key, { until_ms }] of open) {
      if (until_ms > clock.monotonic_ms() && open.size < OPEN_AT_ONCE) return
      take(key)
    }
  }
  return {
    issue({ user_id, method, credential_id }) {
      sweep()
      const ticket = randomBytes(32).toString('base64url')
      const key = hashOf(ticket)
      const own = owned.get(user_id) ?? new Set<string>()
      if (own.size >= OPEN_OF_ONE) take(own.keys().next().value!)
      owned.set(user_id, own.add(key))
      open.set(key, {
        holder: { user_id, method, credential_id },
        until_ms: clock.monotonic_ms() + LIFETIME_MS,
      })
      return { ticket, expires_at: new Date(clock.now() + LIFETIME_MS).toISOString() }
    },
    redeem(ticket) {
      const found = take(hashOf(ticket))
      return found && found.until_ms > clock.monotonic_ms() ? found.holder : undefined
    },
  }
}
