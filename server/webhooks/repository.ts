import type { Db } from '#server/kernel/db'
import { type Page, selectPage, type Wanted, type Span } from '#server/kernel/page'
import type { WebhookKind } from './schema.ts'

/** A row of `webhooks`. */
export interface WebhookRow {
  id: string
  project_id: string
  app_id: string | null
  kind: WebhookKind
  provider: string | null
  name: string
  all_projects: number
  enabled: number
  events: string
  target: string | null
  config: string | null
  token_digest: string | null
  token: string | null
  secret: string | null
  created_by: string | null
  created_at: string
  updated_at: string
}
const COLUMNS =
  'id, project_id, app_id, kind, provider, name, all_projects, enabled, events, target, config, token_digest, token, secret, created_by, created_at, updated_at'

/** SQL of webhooks and nothing else. */
export function createWebhookRepository(db: Db) {
  return {
    page: (
      project_ids: readonly string[] | undefined,
      filter: { project_id?: Wanted; app_id?: Wanted; kind?: Wanted; all_projects?: Wanted },
      ...span: Span
    ): Page<WebhookRow> =>
      selectPage<WebhookRow>(
        db,
        {
          table: 'webhooks',
          project_ids,
          equals: { ...filter },
        },
        span,
      ),
    find: (id: string) => db.sql('SELECT * FROM webhooks WHERE id = ?').get(id) as WebhookRow | undefined,
    byToken: (digest: string) =>
      db.sql('SELECT * FROM webhooks WHERE token_digest = ?').get(digest) as WebhookRow | undefined,
    countOf: (project_id: string) =>
      db.sql('SELECT count(*) FROM webhooks WHERE project_id = ?').pluck().get(project_id) as number,
    /** Notifications that may want an event of this project and these apps. */
    listeners: (project_id: string | null, app_ids: readonly string[], at: string) =>
      db
        .sql(
          `SELECT * FROM webhooks WHERE kind = 'notification' AND enabled = 1 AND created_at <= @at
           AND (all_projects = 1 OR project_id = @project_id) AND (app_id IS NULL OR app_id IN (SELECT value FROM json_each(@app_ids)))`,
        )
        .all({ project_id, app_ids: JSON.stringify(app_ids), at }) as WebhookRow[],
    /** The git hook through which an app hears of its repository. */
    gitHookOf: (project_id: string, app_id: string) =>
      db
        .sql(
          `SELECT * FROM webhooks WHERE kind = 'git' AND enabled = 1 AND project_id = ? AND (app_id IS NULL OR app_id = ?)
           ORDER BY app_id IS NULL, rowid DESC LIMIT 1`,
        )
        .get(project_id, app_id) as WebhookRow | undefined,
    insert: (row: WebhookRow) =>
      db.sql(`INSERT INTO webhooks (${COLUMNS}) VALUES (${COLUMNS.replace(/\w+/g, '@$&')})`).run(row),
    update: (row: WebhookRow) =>
      db
        .sql(
          `UPDATE webhooks SET name = @name, enabled = @enabled, events = @events, target = @target, config = @config,
             token_digest = @token_digest, token = @token, secret = @secret, updated_at = @updated_at WHERE id = @id`,
        )
        .run(row),
    delete: (id: string) => db.sql('DELETE FROM webhooks WHERE id = ?').run(id),
    /** An app's hooks follow it into another project; whether it has any. */
    relocate: (app_id: string, project_id: string): boolean =>
      db.sql('UPDATE webhooks SET project_id = ? WHERE app_id = ?').run(project_id, app_id).changes > 0,
    position: () => db.sql('SELECT seq FROM webhook_position').pluck().get() as number | undefined,
    setPosition: (seq: number) =>
      db
        .sql(
          `INSERT INTO webhook_position (only_row, seq) VALUES (1, @seq)
           ON CONFLICT (only_row) DO UPDATE SET seq = max(seq, excluded.seq)`,
        )
        .run({ seq }),
  }
}
export type WebhookRepository = ReturnType<typeof createWebhookRepository>
