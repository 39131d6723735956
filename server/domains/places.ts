import { own } from '#server/kernel/own'
import type { Db } from '#server/kernel/db'
import { COLUMNS, type DomainRow, NAMED } from './row.ts'

/** Columns that a route can do without, as those of a domain without such rules. */
const PLAIN: Record<string, string> = Object.fromEntries(
  Object.entries({
    headers: "'{}'",
    error_pages: "'{}'",
    ip_allow: "'[]'",
    hsts: 'NULL',
    finding: 'NULL',
  }).map(([name, value]) => [name, `${value} AS ${name}`]),
)

const PLACE = COLUMNS.map((name) => own(PLAIN, name) ?? name).join(', ')
/** Whether a name is one label below one of `@below`, which begin with a dot. */
const parentOf = (column: string) =>
  `substr(${column}, instr(${column}, '.')) IN (SELECT value FROM json_each(@below))`

/** SQL of what domains have a part in where a request goes. */
export function createDomainPlaces(db: Db) {
  return {
    /**
     * Domains of these projects, undefined means all, without what has no part in where a request goes: their
     * headers and pages may be megabytes.
     */
    placesOf: (project_ids: readonly string[] | undefined) =>
      db
        .sql(
          `SELECT ${PLACE} FROM domains WHERE @ids IS NULL OR project_id IN (SELECT value FROM json_each(@ids)) ORDER BY rowid`,
        )
        .all({ ids: project_ids ? JSON.stringify(project_ids) : null }) as DomainRow[],
    /**
     * The same of domains of a project that have a part in where requests for these go: they themselves, and those
     * whose names or paths come before theirs.
     */
    placesBeside(project_id: string, ids: readonly string[]): DomainRow[] {
      const named = db
        .sql('SELECT hostname, counterpart FROM domains WHERE id IN (SELECT value FROM json_each(?))')
        .all(JSON.stringify(ids)) as Pick<DomainRow, 'hostname' | 'counterpart'>[]
      const names = named.flatMap(({ hostname, counterpart }) =>
        counterpart === null ? [hostname] : [hostname, counterpart],
      )
      const below = names.flatMap((name) => (name.startsWith('*.') ? [name.slice(1)] : []))
      const beside = below.length === 0 ? '' : `OR ${parentOf('hostname')} OR ${parentOf('counterpart')}`
      return db
        .sql(
          `SELECT ${PLACE} FROM domains WHERE ${below.length === 0 ? '+' : ''}project_id = @project_id AND (${NAMED} ${beside}) ORDER BY rowid`,
        )
        .all({ project_id, names: JSON.stringify(names), below: JSON.stringify(below) }) as DomainRow[]
    },
  }
}
