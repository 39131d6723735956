import type { Actor } from '#server/kernel/access'
import type { AuditEntry, AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { newId } from '#server/kernel/ids'
import type { Page, Sort, Span } from '#server/kernel/page'
import { type AuditFilter, type AuditRow, createAuditRepository } from './repository.ts'
import { createRefusalLog, type Refusal } from './refusals.ts'
import type { AuditLine } from './schema.ts'

/** The trail: written by every domain, read by administrators and project owners. */
export interface Audit extends AuditTrail {
  /** Writes a refused request, as long as not too many come. */
  refused(refusal: Refusal, actor: Actor | undefined): void
  page(filter: AuditFilter, ...[limit, offset, sort]: Span): Page<AuditLine>
  /**
   * Every line that matches, newest first unless asked otherwise, in pieces that take some
   * milliseconds each: an export of any size needs little memory and keeps nobody waiting. A piece
   * in which nothing matched is empty.
   */
  pieces(filter: AuditFilter, sort?: Sort): Generator<AuditLine[]>
  /** Forgets some of the lines older than so many days; returns how many. */
  prune(retention_days: number): number
}

const DAY_MS = 86_400_000
/**
 * Fields whose values never enter the trail, whoever hands them in: a last net below the
 * allow-lists of the domains.
 */
const SECRET_FIELD = /(password|secret|token|private_key|passphrase|seed|hash|credential)$/i

/** Characters that a line keeps of one field, and of all: a page has a hundred lines. */
const MOST_OF_FIELD = 4096
const MOST_OF_LINE = 16_384

const jsonOf = (value: unknown): string | undefined =>
  JSON.stringify(value, (key, inner: unknown) =>
    SECRET_FIELD.test(key) && typeof inner === 'string' ? '[secret]' : inner,
  )

/** The values of a line as JSON. Of what is large its size is kept: the configuration itself stands in releases. */
function cleaned(values: Record<string, unknown> | null | undefined): string | null {
  if (!values) return null
  let left = MOST_OF_LINE
  const fields = Object.entries(values).flatMap(([key, value]) => {
    const text = jsonOf(SECRET_FIELD.test(key) && typeof value === 'string' ? '[secret]' : value)
    if (text === undefined) return []
    const size = text.length + key.length
    const is_kept = size <= Math.min(MOST_OF_FIELD, left)
    if (is_kept) left -= size
    return `${JSON.stringify(key)}:${is_kept ? text : JSON.stringify(`[${text.length} characters]`)}`
  })
  return `{${fields.join(',')}}`
}

type Described = Pick<AuditLine['resource'], 'name' | 'exists'>
function lineOf(row: AuditRow, described: Described): AuditLine {
  const parse = (text: string | null) =>
    text === null ? null : (JSON.parse(text) as Record<string, unknown>)
  return {
    id: row.id,
    created_at: row.created_at,
    action: row.action,
    actor: {
      id: row.actor_id,
      email: row.actor_email,
      method: row.method,
      credential_id: row.credential_id,
    },
    resource: { type: row.resource_type, id: row.resource_id, ...described },
    project_id: row.project_id,
    before: parse(row.before),
    after: parse(row.after),
    address: row.address,
    request_id: row.request_id,
  }
}

/**
 * Lines are written in the caller's transaction, so that a change and its line are there together
 * or not at all.
 */
export function createAudit(options: {
  db: Db
  clock: Clock
  /** Whether a resource is still there; undefined for a kind that is not known to be one. */
  exists?: (type: string, id: string) => boolean | undefined
}): Audit {
  const { db, clock } = options
  const repository = createAuditRepository(db)
  const told = (rows: readonly AuditRow[]): AuditLine[] => {
    const nameAt = repository.names()
    return rows.map((row) => {
      const { resource_id, resource_type, seq } = row
      if (resource_id === null) return lineOf(row, { name: null, exists: null })
      const name = nameAt(resource_id, seq) ?? null
      return lineOf(row, { name, exists: options.exists?.(resource_type, resource_id) ?? null })
    })
  }
  const write = (
    actor: Pick<Actor, 'user_id' | 'email' | 'credential_id' | 'address' | 'request_id'> & {
      method: string
    },
    entry: AuditEntry,
  ) => {
    repository.insert({
      id: newId('aud'),
      created_at: clock.iso(),
      actor_id: actor.user_id || null,
      actor_email: actor.email || null,
      method: actor.method,
      credential_id: actor.credential_id || null,
      action: entry.action,
      resource_type: entry.resource_type,
      resource_id: entry.resource_id,
      project_id: entry.project_id,
      before: cleaned(entry.before),
      after: cleaned(entry.after),
      address: actor.address || null,
      request_id: actor.request_id || null,
    })
  }
  const refused = createRefusalLog(clock, (actor, refusal, entry) =>
    db.note(() =>
      write(
        {
          user_id: '',
          email: '',
          method: 'none',
          credential_id: '',
          ...actor,
          address: refusal.address,
          request_id: refusal.id,
        },
        entry,
      ),
    ),
  )
  return {
    record: write,
    refused,
    page(filter, limit, offset, sort) {
      const { rows, total } = repository.page(filter, limit, offset, sort)
      return { rows: told(rows), total }
    },
    *pieces(filter, sort) {
      const order = sort?.[0]?.descending === false ? 'oldest' : 'newest'
      for (const rows of repository.pieces(filter, order)) yield told(rows)
    },
    prune: (retention_days) =>
      repository.prune(new Date(clock.now() - retention_days * DAY_MS).toISOString()),
  }
}
