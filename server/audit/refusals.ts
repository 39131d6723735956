import { own } from '#server/kernel/own'
import type { Access, Actor } from '#server/kernel/access'
import type { Clock } from '#server/kernel/clock'
import type { AuditEntry } from '#server/kernel/audit'

/** A request that was refused, as the HTTP layer saw it. */
export interface Refusal {
  method: string
  path: string
  address: string
  id: string
  code: string
  access: Access
}

const WINDOW_MS = 60_000
/**
 * Lines that one address may add in a minute, and all addresses together, so that a flood of refused calls
 * cannot fill the disk.
 */
const PER_ADDRESS = 20
const IN_ALL = 300
const MAX_PATH_LENGTH = 300

const ACTIONS: Record<string, string> = {
  UNAUTHORIZED: 'access.unauthorized',
  FORBIDDEN: 'access.forbidden',
  PASSWORD_CHANGE_REQUIRED: 'access.password_change_required',
  CSRF_INVALID: 'access.csrf_refused',
  RATE_LIMITED: 'access.rate_limited',
}

/**
 * Writes refused requests into the trail, with a limit; how many were left out is told when the minute is
 * over.
 * @param write tells whether it could.
 */
export function createRefusalLog(
  clock: Clock,
  write: (actor: Actor | undefined, refusal: Refusal, entry: AuditEntry) => boolean,
) {
  let started_ms = clock.monotonic_ms()
  let left_out = 0
  let total = 0
  const counts = new Map<string, number>()
  const turn = (refusal: Refusal) => {
    if (clock.monotonic_ms() - started_ms < WINDOW_MS) return
    const is_told =
      left_out === 0 ||
      write(undefined, refusal, {
        action: 'access.refusals_left_out',
        resource_type: 'request',
        resource_id: null,
        project_id: null,
        after: { left_out },
      })
    if (!is_told) return
    started_ms = clock.monotonic_ms()
    left_out = total = 0
    counts.clear()
  }
  return (refusal: Refusal, actor: Actor | undefined) => {
    const action = own(ACTIONS, refusal.code)
    // A wrong password or code is recorded by the login itself, which knows whose it was.
    if (!action) return
    turn(refusal)
    const seen = counts.get(refusal.address) ?? 0
    if (seen >= PER_ADDRESS || total >= IN_ALL) {
      left_out += 1
      return
    }
    counts.set(refusal.address, seen + 1)
    total += 1
    const after = {
      request: `${refusal.method} ${refusal.path.slice(0, MAX_PATH_LENGTH)}`,
      needed: refusal.access,
    }
    const is_written = write(actor, refusal, {
      action,
      resource_type: 'request',
      resource_id: null,
      project_id: null,
      after,
    })
    if (!is_written) left_out += 1
  }
}
