import type { Db } from '#server/kernel/db'
import { selectPage, type Span } from '#server/kernel/page'
import type { PreviewStatus } from './schema.ts'

/** A row of `previews`. */
export interface PreviewRow {
  id: string
  project_id: string
  app_id: string
  number: number
  name: string
  title: string
  status: PreviewStatus
  source: 'pull_request' | 'api'
  /** The app that runs it. */
  runner_id: string | null
  is_fork: number
  git_url: string
  branch: string
  commit_sha: string | null
  waiting_sha: string | null
  trusted: number
  web_url: string | null
  approved_by: string | null
  approved_at: string | null
  last_error: string | null
  told: string | null
  removal_reason: string | null
  revival: string | null
  expires_at: string | null
  created_at: string
  updated_at: string
}
/** A row of `preview_settings`; `env` is sealed JSON. */
export interface SettingsRow {
  app_id: string
  enabled: number
  max_previews: number
  ttl_seconds: number | null
  domain_pattern: string
  forks: 'never' | 'approval' | 'without_secrets'
  databases: number
  env: string | null
  updated_at: string
}
export interface CopyRow {
  preview_id: string
  database_id: string
  source_name: string
  key: string
}
/** Columns that change after a preview was made; keys of an update come from this list only. */
const CHANGEABLE = [
  'title',
  'runner_id',
  'is_fork',
  'git_url',
  'branch',
  'commit_sha',
  'waiting_sha',
  'trusted',
  'web_url',
  'approved_by',
  'approved_at',
  'last_error',
  'told',
  'removal_reason',
  'revival',
  'expires_at',
] as const
export type PreviewColumns = Partial<Pick<PreviewRow, (typeof CHANGEABLE)[number]>>

const named = (columns: readonly string[]) =>
  `(${columns.join(', ')}) VALUES (${columns.map((name) => `@${name}`).join(', ')})`

/** SQL of previews and nothing else. */
export function createPreviewRepository(db: Db) {
  const one = (where: string, ...values: unknown[]) =>
    db.sql(`SELECT * FROM previews WHERE ${where}`).get(...values) as PreviewRow | undefined
  const all = (where: string, ...values: unknown[]) =>
    db.sql(`SELECT * FROM previews WHERE ${where} ORDER BY rowid`).all(...values) as PreviewRow[]
  return {
    insert: (row: PreviewRow) => db.sql(`INSERT INTO previews ${named(Object.keys(row))}`).run(row),
    find: (id: string) => one('id = ?', id),
    byNumber: (app_id: string, number: number) => one('app_id = ? AND number = ?', app_id, number),
    byRunner: (runner_id: string) => one('runner_id = ?', runner_id),
    isNameTaken: (name: string) => one('name = ?', name) !== undefined,
    ofApp: (app_id: string) => all('app_id = ?', app_id),
    ofBranch: (app_id: string, branch: string) =>
      all(`app_id = ? AND branch = ? AND is_fork = 0 AND status <> 'removing'`, app_id, branch),
    waiting: (app_id: string): number =>
      db
        .sql(`SELECT count(*) FROM previews WHERE app_id = ? AND status = 'waiting'`)
        .pluck()
        .get(app_id) as number,
    running: () => all(`runner_id IS NOT NULL AND status <> 'removing'`),
    removing: () => all(`status = 'removing'`),
    expired: (at: string) => all(`expires_at <= ? AND status <> 'removing'`, at),
    page: (app_id: string, ...span: Span) =>
      selectPage<PreviewRow>(
        db,
        {
          table: 'previews',
          project_ids: undefined,
          equals: { app_id },
        },
        span,
      ),
    setStatus: (id: string, from: PreviewStatus, to: PreviewStatus, at: string): boolean =>
      db
        .sql('UPDATE previews SET status = ?, updated_at = ? WHERE id = ? AND status = ?')
        .run(to, at, id, from).changes === 1,
    update(id: string, change: PreviewColumns, at: string): void {
      const names = CHANGEABLE.filter((name) => name in change)
      if (names.length === 0) return
      const set = names.map((name) => `${name} = @${name}`).join(', ')
      db.sql(`UPDATE previews SET ${set}, updated_at = @at WHERE id = @id`).run({ ...change, id, at })
    },
    delete: (id: string) => db.sql('DELETE FROM previews WHERE id = ?').run(id),
    settings: (app_id: string) =>
      db.sql('SELECT * FROM preview_settings WHERE app_id = ?').get(app_id) as SettingsRow | undefined,
    saveSettings: (row: SettingsRow) =>
      db
        .sql(
          `INSERT INTO preview_settings ${named(Object.keys(row))} ON CONFLICT (app_id) DO UPDATE SET
             enabled = excluded.enabled, max_previews = excluded.max_previews, ttl_seconds = excluded.ttl_seconds,
             domain_pattern = excluded.domain_pattern, forks = excluded.forks, databases = excluded.databases,
             env = excluded.env, updated_at = excluded.updated_at`,
        )
        .run(row),
    copies: (preview_id: string) =>
      db.sql('SELECT * FROM preview_databases WHERE preview_id = ?').all(preview_id) as CopyRow[],
    insertCopy: (row: CopyRow) => db.sql(`INSERT INTO preview_databases ${named(Object.keys(row))}`).run(row),
    deleteCopy: (preview_id: string, database_id: string) =>
      db
        .sql('DELETE FROM preview_databases WHERE preview_id = ? AND database_id = ?')
        .run(preview_id, database_id),
  }
}
export type PreviewRepository = ReturnType<typeof createPreviewRepository>
