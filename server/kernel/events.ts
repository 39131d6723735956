import type { Clock } from './clock.ts'
import { orderBy, type Span } from '#server/kernel/page'
import type { Db } from './db.ts'
import { forgetSome } from './forget.ts'
import type { Log } from './log.ts'

/**
 * Something that happened, told to WebSocket clients, the timeline, webhooks and notifications.
 * Never holds a secret.
 */
export interface PlatformEvent {
  /** Position in the one order of events; the cursor that clients resume from. */
  seq: number
  /** `<subject>.<what happened>`: `app.created`, `deployment.step`, `job.finished`. */
  type: string
  project_id: string | null
  app_id: string | null
  deployment_id: string | null
  /** Acting user, or null for the platform itself. */
  actor_id: string | null
  payload: Record<string, unknown>
  created_at: string
}
/** What a thing is called that an event is about, as far as its payload tells; of a certificate its first name. */
export function toldName({
  name,
  hostname,
  target_name,
  names,
}: PlatformEvent['payload']): string | undefined {
  const first: unknown = Array.isArray(names) ? names[0] : undefined
  return [name, hostname, target_name, first].find((text): text is string => typeof text === 'string')
}
export type NewEvent = Pick<PlatformEvent, 'type' | 'payload'> &
  Partial<Pick<PlatformEvent, 'project_id' | 'app_id' | 'deployment_id' | 'actor_id'>>
export interface EventFilter {
  app_id?: string
  deployment_id?: string
  project_id?: string
  /** Events of any of these projects; `all` leaves out only what belongs to none. */
  in_projects?: readonly string[] | 'all'
  /** Events whose payload names this database. */
  database_id?: string
  /** Events whose payload names this node. */
  node_id?: string
  /** Events whose payload names this backup. */
  backup_id?: string
  /** Events whose payload names this user. */
  user_id?: string
  /** Types that are left out. */
  without?: readonly string[]
  types?: readonly string[]
}

export interface Events {
  /**
   * Writes an event in the current transaction; subscribers hear of it after the commit, and never
   * after a rollback.
   */
  append(event: NewEvent): void
  /** Hears every committed event, in order. Returns the unsubscribe function. */
  subscribe(listener: (event: PlatformEvent) => void): () => void
  /** Events after a position, oldest first. */
  after(seq: number, filter: EventFilter, limit: number): PlatformEvent[]
  /** A page of events, newest first. */
  page(filter: EventFilter, ...[limit, offset, sort]: Span): { rows: PlatformEvent[]; total: number }
  /** Position of the newest event. */
  latest(): number
  /** Forgets some of the events older than `before` (ISO time); returns how many. */
  prune(before: string): number
}

/** Keys of a filter that an event's own columns answer, and those that its payload does. */
export const COLUMN_KEYS = ['app_id', 'deployment_id', 'project_id'] as const
export const PAYLOAD_KEYS = ['database_id', 'backup_id', 'node_id', 'user_id'] as const

interface Row extends Omit<PlatformEvent, 'payload'> {
  payload: string
}

function where(filter: EventFilter): { clause: string; values: unknown[] } {
  const parts: string[] = []
  const values: unknown[] = []
  for (const key of COLUMN_KEYS) {
    if (filter[key] !== undefined) {
      parts.push(`${key} = ?`)
      values.push(filter[key])
    }
  }
  if (filter.in_projects === 'all') parts.push('project_id IS NOT NULL')
  else if (filter.in_projects) {
    parts.push('project_id IN (SELECT value FROM json_each(?))')
    values.push(JSON.stringify(filter.in_projects))
  }
  // As the indexes on them are written.
  for (const key of PAYLOAD_KEYS) {
    if (filter[key] === undefined) continue
    parts.push(`payload ->> '${key}' = ?`)
    values.push(filter[key])
  }
  if (filter.types) {
    parts.push(`type IN (SELECT value FROM json_each(?))`)
    values.push(JSON.stringify(filter.types))
  }
  if (filter.without) {
    parts.push(`type NOT IN (SELECT value FROM json_each(?))`)
    values.push(JSON.stringify(filter.without))
  }
  return { clause: parts.length ? parts.join(' AND ') : '1', values }
}

const read = (row: Row): PlatformEvent => ({
  ...row,
  payload: JSON.parse(row.payload) as Record<string, unknown>,
})

/** The outbox: events are rows of the same transaction as the change that they tell. */
export function createEvents(db: Db, clock: Clock, log: Log): Events {
  const listeners = new Set<(event: PlatformEvent) => void>()
  const publish = (event: PlatformEvent) => {
    for (const listener of listeners) {
      try {
        listener(event)
      } catch (error) {
        log.error('A listener of events failed', { type: event.type, error })
      }
    }
  }
  /** From the index of each project: whoever has little to hear does not have all that others did looked through. */
  const afterOf = (projects: readonly string[], seq: number, filter: EventFilter, limit: number) => {
    const next = projects.flatMap((project_id) => {
      const { clause, values } = where({ ...filter, project_id })
      return db
        .sql(`SELECT seq FROM events WHERE seq > ? AND ${clause} ORDER BY seq LIMIT ?`)
        .pluck()
        .all(seq, ...values, limit) as number[]
    })
    const places = JSON.stringify(next.sort((a, b) => a - b).slice(0, limit))
    return (
      db
        .sql('SELECT * FROM events WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq')
        .all(places) as Row[]
    ).map(read)
  }
  return {
    append(event) {
      const full = {
        project_id: null,
        app_id: null,
        deployment_id: null,
        actor_id: null,
        ...event,
        created_at: clock.iso(),
      }
      const { lastInsertRowid } = db
        .sql(
          'INSERT INTO events (type, project_id, app_id, deployment_id, actor_id, payload, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)',
        )
        .run(
          full.type,
          full.project_id,
          full.app_id,
          full.deployment_id,
          full.actor_id,
          JSON.stringify(full.payload),
          full.created_at,
        )
      db.afterCommit(() => publish({ ...full, seq: Number(lastInsertRowid) }))
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    after(seq, filter, limit) {
      const { in_projects, ...rest } = filter
      if (Array.isArray(in_projects)) return afterOf(in_projects, seq, rest, limit)
      const { clause, values } = where(filter)
      return (
        db
          .sql(`SELECT * FROM events WHERE seq > ? AND ${clause} ORDER BY seq LIMIT ?`)
          .all(seq, ...values, limit) as Row[]
      ).map(read)
    },
    page(filter, limit, offset, sort) {
      const { clause, values } = where(filter)
      const rows = db
        .sql(`SELECT * FROM events WHERE ${clause} ${orderBy(sort, 'seq DESC')} LIMIT ? OFFSET ?`)
        .all(...values, limit, offset) as Row[]
      const total = db
        .sql(`SELECT count(*) FROM events WHERE ${clause}`)
        .pluck()
        .get(...values) as number
      return { rows: rows.map(read), total }
    },
    latest: () => db.sql('SELECT coalesce(max(seq), 0) FROM events').pluck().get() as number,
    prune: (before) => forgetSome(db, { table: 'events', where: 'created_at < ?' }, before),
  }
}
