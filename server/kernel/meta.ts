import type { Db } from './db.ts'

/** Single values of the installation, by key; the owner of the table `meta`. */
export const createMeta = (db: Db) => ({
  get: (key: string): string | undefined =>
    db.sql('SELECT value FROM meta WHERE key = ?').pluck().get(key) as string | undefined,
  set(key: string, value: string): void {
    db.sql('INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value').run(
      key,
      value,
    )
  },
  /** The value that is there; this one when there is none yet. */
  ensure(key: string, value: () => string): string {
    db.sql('INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO NOTHING').run(key, value())
    return this.get(key)!
  },
  remove(key: string): void {
    db.sql('DELETE FROM meta WHERE key = ?').run(key)
  },
})
