import type { Db } from '#server/kernel/db'

export interface SettingsRow {
  section: string
  value: string
  secrets: string | null
  updated_at: string
}

/** SQL of settings and nothing else. */
export function createSettingsRepository(db: Db) {
  return {
    all: () => db.sql('SELECT * FROM settings').all() as SettingsRow[],
    put: (row: SettingsRow) =>
      db
        .sql(
          `INSERT INTO settings (section, value, secrets, updated_at) VALUES (@section, @value, @secrets, @updated_at)
       ON CONFLICT (section) DO UPDATE SET value = excluded.value, secrets = excluded.secrets, updated_at = excluded.updated_at`,
        )
        .run(row),
  }
}
export type SettingsRepository = ReturnType<typeof createSettingsRepository>
