import type { Actor } from './access.ts'

/** One line of the audit trail: who changed what. */
export interface AuditEntry {
  /** `app.create`, `member.role_change`, `login.failed`. */
  action: string
  /** Kind of the resource: `app`, `user`, `api_key` … */
  resource_type: string
  resource_id: string | null
  project_id: string | null
  /** Changed fields before and after; never a secret value. */
  before?: Record<string, unknown> | null
  after?: Record<string, unknown> | null
}

/**
 * The append-only trail. `record` runs in the transaction of the change that it tells, so that neither exists
 * without the other.
 */
export interface AuditTrail {
  record(actor: Actor, entry: AuditEntry): void
}
