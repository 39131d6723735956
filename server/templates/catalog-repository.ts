import type { Db } from '#server/kernel/db'

export interface CatalogRow {
  id: string
  name: string
  url: string | null
  digest: string
  templates: number
  checked_at: string
  created_at: string
}

/** SQL of catalogues of templates and nothing else. */
export function createCatalogRepository(db: Db) {
  return {
    find: (id: string) =>
      db.sql('SELECT * FROM template_catalogs WHERE id = ?').get(id) as CatalogRow | undefined,
    findByName: (name: string) =>
      db.sql('SELECT * FROM template_catalogs WHERE name = ?').get(name) as CatalogRow | undefined,
    contents: () =>
      db
        .sql(
          `SELECT id, name, content FROM template_catalog_contents
             JOIN template_catalogs ON id = catalog_id ORDER BY template_catalogs.rowid`,
        )
        .all() as { id: string; name: string; content: string }[],
    insert(row: CatalogRow, content: string): void {
      db.sql(
        `INSERT INTO template_catalogs (id, name, url, digest, templates, checked_at, created_at)
         VALUES (@id, @name, @url, @digest, @templates, @checked_at, @created_at)`,
      ).run(row)
      db.sql('INSERT INTO template_catalog_contents (catalog_id, content) VALUES (?, ?)').run(row.id, content)
    },
    replace(row: CatalogRow, content: string): void {
      db.sql(
        `UPDATE template_catalogs SET digest = @digest, templates = @templates, checked_at = @checked_at
         WHERE id = @id`,
      ).run(row)
      db.sql('UPDATE template_catalog_contents SET content = ? WHERE catalog_id = ?').run(content, row.id)
    },
    setChecked: (id: string, at: string) =>
      db.sql('UPDATE template_catalogs SET checked_at = ? WHERE id = ?').run(at, id),
    delete: (id: string) => db.sql('DELETE FROM template_catalogs WHERE id = ?').run(id),
  }
}
