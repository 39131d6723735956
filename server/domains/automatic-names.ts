import type { Db } from '#server/kernel/db'
import type { DomainRow } from './row.ts'

/** The first label of an automatic name, which says what it is of, with its dot. */
const LABEL = `substr(hostname, 1, instr(hostname, '.'))`

/** SQL of the names below the base domain. */
export function createAutomaticNames(db: Db) {
  return {
    /** Gives the app's automatic domain another name; false when the name is taken. */
    renameAutomatic: (app_id: string, hostname: string, at: string): boolean =>
      db
        .sql(
          `UPDATE OR IGNORE domains SET hostname = ?, updated_at = ? WHERE app_id = ? AND kind = 'automatic' AND service IS NULL AND hostname <> ?`,
        )
        .run(hostname, at, app_id, hostname).changes === 1,
    automaticOf: (app_id: string) =>
      db
        .sql(`SELECT * FROM domains WHERE app_id = ? AND kind = 'automatic' AND service IS NULL`)
        .get(app_id) as DomainRow | undefined,
    /** Automatic names of the services of an app. */
    automaticOfServices: (app_id: string) =>
      db
        .sql(`SELECT * FROM domains WHERE app_id = ? AND kind = 'automatic' AND service IS NOT NULL`)
        .all(app_id) as DomainRow[],
    renameService: (id: string, hostname: string, at: string): boolean =>
      db
        .sql('UPDATE OR IGNORE domains SET hostname = ?, updated_at = ? WHERE id = ? AND hostname <> ?')
        .run(hostname, at, id, hostname).changes === 1,
    /**
     * Moves automatic names below another base domain, but for one that is taken there; a mode that somebody chose
     * stays.
     */
    rebaseAutomatic: (base_domain: string, ssl_mode: string, at: string) =>
      db
        .sql(
          `UPDATE OR IGNORE domains SET hostname = ${LABEL} || @base_domain, updated_at = @at,
             ssl_mode = iif(ssl_mode IN ('off', 'acme'), @ssl_mode, ssl_mode)
           WHERE kind = 'automatic' AND hostname <> ${LABEL} || @base_domain RETURNING id, app_id, ssl_mode`,
        )
        .all({ base_domain, ssl_mode, at }) as Pick<DomainRow, 'id' | 'app_id' | 'ssl_mode'>[],
    /** Automatic names of apps. */
    automatic: () =>
      db
        .sql(`SELECT hostname, project_id FROM domains WHERE kind = 'automatic' AND service IS NULL`)
        .all() as Pick<DomainRow, 'hostname' | 'project_id'>[],
  }
}
