import type { Db } from '#server/kernel/db'
import { forgetAll, forgetSome } from '#server/kernel/forget'
import { selectPage, type Wanted, type Span } from '#server/kernel/page'
import type { Delivery } from './schema.ts'

/** A row of `webhook_deliveries`. */
export interface DeliveryRow {
  id: string
  webhook_id: string
  direction: Delivery['direction']
  event: string
  repeat_key: string | null
  content: string
  status: Delivery['status']
  attempts: number
  response_status: number | null
  detail: string | null
  duration_ms: number | null
  deployment_ids: string
  next_attempt_at: string | null
  created_at: string
  finished_at: string | null
}
const COLUMNS =
  'id, webhook_id, direction, event, repeat_key, content, status, attempts, response_status, detail, duration_ms, deployment_ids, next_attempt_at, created_at, finished_at'
/** What a status is about: previews of an app have their own. */
interface StatusOf {
  sha: string
  app_name: string
  number: number | null
}
/** Webhooks of some projects; one for all projects is none of theirs. */
const OF_PROJECTS =
  'SELECT id FROM webhooks WHERE all_projects = 0 AND project_id IN (SELECT value FROM json_each(?))'

export const deliveryView = ({ content, deployment_ids, repeat_key, ...row }: DeliveryRow): Delivery => ({
  ...row,
  deployment_ids: JSON.parse(deployment_ids) as string[],
  content: JSON.parse(content) as unknown,
})

/** SQL of deliveries and nothing else. */
export function createDeliveryRepository(db: Db) {
  return {
    page: (webhook_id: string, status: Wanted, ...span: Span) =>
      selectPage<DeliveryRow>(
        db,
        {
          table: 'webhook_deliveries',
          project_ids: undefined,
          equals: { webhook_id, status },
        },
        span,
      ),
    find: (id: string) =>
      db.sql('SELECT * FROM webhook_deliveries WHERE id = ?').get(id) as DeliveryRow | undefined,
    latest: (webhook_id: string) =>
      db
        .sql(
          'SELECT status, created_at FROM webhook_deliveries WHERE webhook_id = ? ORDER BY rowid DESC LIMIT 1',
        )
        .get(webhook_id) as Pick<DeliveryRow, 'status' | 'created_at'> | undefined,
    isKnown: (webhook_id: string, repeat_key: string, since: string) =>
      db
        .sql('SELECT 1 FROM webhook_deliveries WHERE webhook_id = ? AND repeat_key = ? AND created_at > ?')
        .pluck()
        .get(webhook_id, repeat_key, since) === 1,
    /** False when a delivery with the same key is there already. */
    insert: (row: DeliveryRow): boolean =>
      db
        .sql(
          `INSERT INTO webhook_deliveries (${COLUMNS}) VALUES (${COLUMNS.replace(/\w+/g, '@$&')})
           ON CONFLICT (webhook_id, repeat_key) WHERE repeat_key IS NOT NULL DO NOTHING`,
        )
        .run(row).changes === 1,
    /** Counts one more in the newest entry, where that is about the same kind of refused call; else false. */
    refusedAgain: (refused: { webhook_id: string; event: string; detail: string; at: string }): boolean =>
      db
        .sql(
          `UPDATE webhook_deliveries SET attempts = attempts + 1, created_at = @at, finished_at = @at
           WHERE rowid = (SELECT rowid FROM webhook_deliveries WHERE webhook_id = @webhook_id
             ORDER BY rowid DESC LIMIT 1)
             AND event = @event AND detail = @detail AND status = 'failed' AND direction = 'in'`,
        )
        .run(refused).changes === 1,
    /** Takes the content of the one delivery that came in so many before the newest, and puts something in its place. */
    forgetContent: (webhook_id: string, newer: number, content: string) =>
      db
        .sql(
          `UPDATE webhook_deliveries SET content = ? WHERE rowid = (SELECT rowid FROM webhook_deliveries
             WHERE webhook_id = ? AND direction = 'in' ORDER BY rowid DESC LIMIT 1 OFFSET ?)`,
        )
        .run(content, webhook_id, newer),
    update: (row: DeliveryRow) =>
      db
        .sql(
          `UPDATE webhook_deliveries SET status = @status, attempts = @attempts, response_status = @response_status,
             detail = @detail, duration_ms = @duration_ms, deployment_ids = @deployment_ids,
             next_attempt_at = @next_attempt_at, finished_at = @finished_at WHERE id = @id`,
        )
        .run(row),
    /** What is due, oldest first, of all webhooks but some, and but those of some projects. */
    due: (at: string, but: { webhooks: readonly string[]; projects: readonly string[] }, limit: number) =>
      db
        .sql(
          `SELECT * FROM webhook_deliveries WHERE status = 'pending' AND next_attempt_at <= ?
             AND webhook_id NOT IN (SELECT value FROM json_each(?))
             AND webhook_id NOT IN (${OF_PROJECTS}) ORDER BY next_attempt_at LIMIT ?`,
        )
        .all(at, JSON.stringify(but.webhooks), JSON.stringify(but.projects), limit) as DeliveryRow[],
    /** Whether there is a later status of the same commit, by the same name. */
    hasLaterStatus: (row: Pick<DeliveryRow, 'id' | 'webhook_id' | 'event'>, of: StatusOf): boolean =>
      db
        .sql(
          `SELECT 1 FROM webhook_deliveries WHERE webhook_id = @webhook_id AND event = @event AND direction = 'out'
             AND rowid > (SELECT rowid FROM webhook_deliveries WHERE id = @id)
             AND content ->> 'sha' = @sha AND content ->> 'app_name' = @app_name AND content ->> 'number' IS @number
           LIMIT 1`,
        )
        .get({ ...row, ...of }) !== undefined,
    /** Puts off what is due of one webhook. */
    putOff: (webhook_id: string, at: string, until: string) =>
      db
        .sql(
          `UPDATE webhook_deliveries SET next_attempt_at = ?
           WHERE status = 'pending' AND next_attempt_at <= ? AND webhook_id = ?`,
        )
        .run(until, at, webhook_id),
    /** Puts off what is due of all webhooks of a project but some. */
    putOffProject: (project_id: string, but: readonly string[], at: string, until: string) =>
      db
        .sql(
          `UPDATE webhook_deliveries SET next_attempt_at = ? WHERE status = 'pending' AND next_attempt_at <= ?
             AND webhook_id IN (${OF_PROJECTS}) AND webhook_id NOT IN (SELECT value FROM json_each(?))`,
        )
        .run(until, at, JSON.stringify([project_id]), JSON.stringify(but)),
    /** Brings what waits for a time that lies ahead of any wait to now: a clock that was wrong put it there. */
    mendAhead: (ahead: string, at: string) =>
      db
        .sql(
          `UPDATE webhook_deliveries SET next_attempt_at = ? WHERE status = 'pending' AND next_attempt_at > ?`,
        )
        .run(at, ahead),
    nextDue: () =>
      db.sql(`SELECT min(next_attempt_at) FROM webhook_deliveries WHERE status = 'pending'`).pluck().get() as
        | string
        | null,
    /** A key that is too old to be a repeat may be used again. */
    forgetKey: (webhook_id: string, repeat_key: string, before: string) =>
      db
        .sql(
          `UPDATE webhook_deliveries SET repeat_key = NULL
           WHERE webhook_id = ? AND repeat_key = ? AND created_at < ?`,
        )
        .run(webhook_id, repeat_key, before),
    /** Forgets the deliveries of one webhook, piece by piece: there may be as many as a busy month brings. */
    forgetOf: (webhook_id: string) =>
      forgetAll(() => forgetSome(db, { table: 'webhook_deliveries', where: 'webhook_id = ?' }, webhook_id)),
    /** Forgets some of the deliveries of an app's webhooks; returns how many. */
    forgetOfApp: (app_id: string) =>
      forgetSome(
        db,
        {
          table: 'webhook_deliveries',
          where: 'webhook_id IN (SELECT id FROM webhooks WHERE app_id = ?)',
        },
        app_id,
      ),
    /** Forgets some of the deliveries from before a time; returns how many. */
    prune: (before: string) =>
      forgetSome(
        db,
        { table: 'webhook_deliveries', where: `created_at < ? AND status <> 'pending'` },
        before,
      ),
  }
}
export type DeliveryRepository = ReturnType<typeof createDeliveryRepository>
