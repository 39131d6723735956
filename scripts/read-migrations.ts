import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Migration files of the checkout in order, as `[name, sql]`. Used by the build and by tests. */
export function readMigrations(root: string): [name: string, sql: string][] {
  const directory = join(root, 'storage/migrations')
  return readdirSync(directory)
    .filter((name) => /^\d{4}_[a-z_]+\.sql$/.test(name))
    .sort()
    .map((name) => [name, readFileSync(join(directory, name), 'utf8')])
}
