import type { Db } from '#server/kernel/db'
import { createTableSource, type ResourceSource } from '#server/projects/resources'

/** Projects themselves, which search finds as well. */
export const projectSource = (db: Db): ResourceSource =>
  createTableSource(db, { kind: 'project', table: 'projects', project_column: 'id' })

/**
 * Every kind of resource that lives in projects: counted for quotas, listed in overviews, found by search.
 */
export function projectTables(db: Db): ResourceSource[] {
  return [
    createTableSource(db, { kind: 'app', table: 'apps', status_column: 'status' }),
    createTableSource(db, {
      kind: 'domain',
      table: 'domains',
      name_column: 'hostname',
      status_column: 'status',
    }),
    createTableSource(db, { kind: 'redirect', table: 'redirects', name_column: 'source' }),
    createTableSource(db, { kind: 'certificate', table: 'certificates', status_column: 'status' }),
    createTableSource(db, { kind: 'ssh_key', table: 'ssh_keys', access: 'developer' }),
    createTableSource(db, {
      kind: 'git_credential',
      table: 'git_credentials',
      access: 'developer',
    }),
  ]
}
