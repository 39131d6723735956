import type { Db } from '#server/kernel/db'

export interface StorageProviderRow {
  id: string
  name: string
  kind: string
  /** JSON without secrets. */
  config: string
  /** Sealed JSON of the secret fields. */
  secrets: string | null
  /** Sealed. */
  passphrase: string | null
  is_default: number
  checked_at: string | null
  created_at: string
  updated_at: string
}

/** SQL of storage providers and nothing else. */
export function createStorageProviderRepository(db: Db) {
  const find = (id: string) =>
    db.sql('SELECT * FROM storage_providers WHERE id = ?').get(id) as StorageProviderRow | undefined
  return {
    find,
    all: () => db.sql('SELECT * FROM storage_providers ORDER BY rowid').all() as StorageProviderRow[],
    findByName: (name: string) =>
      db.sql('SELECT * FROM storage_providers WHERE name = ?').get(name) as StorageProviderRow | undefined,
    findDefault: () =>
      db.sql('SELECT * FROM storage_providers WHERE is_default = 1').get() as StorageProviderRow | undefined,
    clearDefault: () => db.sql('UPDATE storage_providers SET is_default = 0 WHERE is_default = 1').run(),
    insert: (row: StorageProviderRow) =>
      db
        .sql(
          `INSERT INTO storage_providers
             (id, name, kind, config, secrets, passphrase, is_default, checked_at, created_at, updated_at)
           VALUES
             (@id, @name, @kind, @config, @secrets, @passphrase, @is_default, @checked_at, @created_at, @updated_at)`,
        )
        .run(row),
    update: (row: StorageProviderRow) =>
      db
        .sql(
          `UPDATE storage_providers SET name = @name, config = @config, secrets = @secrets,
             passphrase = @passphrase, is_default = @is_default, checked_at = @checked_at,
             updated_at = @updated_at
           WHERE id = @id`,
        )
        .run(row),
    setChecked: (id: string, at: string) =>
      db.sql('UPDATE storage_providers SET checked_at = ? WHERE id = ?').run(at, id),
    delete: (id: string) => db.sql('DELETE FROM storage_providers WHERE id = ?').run(id),
  }
}
export type StorageProviderRepository = ReturnType<typeof createStorageProviderRepository>
