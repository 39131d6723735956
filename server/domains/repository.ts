import type { Db } from '#server/kernel/db'
import { forgetSome } from '#server/kernel/forget'
import { type Page, selectPage, type Wanted, type Span } from '#server/kernel/page'
import { storedText } from './hostname.ts'
import { createAutomaticNames } from './automatic-names.ts'
import { createDomainPlaces } from './places.ts'
import { CHANGEABLE, COLUMNS, type DomainColumns, type DomainRow, NAMED } from './row.ts'
import type { DomainStatus } from './schema.ts'

export type { DomainColumns, DomainRow } from './row.ts'

/** The name without its wildcard. */
const bare = (column: string) =>
  `CASE WHEN substr(${column}, 1, 2) = '*.' THEN substr(${column}, 3) ELSE ${column} END`
/** What certificates need to know of a domain. */
const CERTIFIED = 'id, project_id, hostname, ssl_mode, www, counterpart'
/** Whether DNS has shown that the name belongs to whoever added it. */
export const isProven = ({ status }: Pick<DomainRow, 'status'>) =>
  status === 'verified' || status === 'active'

export type ProvenDomain = Pick<
  DomainRow,
  'id' | 'project_id' | 'hostname' | 'ssl_mode' | 'www' | 'counterpart'
>
const PROVEN = `status IN ('verified', 'active')`
/** Rows whose `bare` is `@name` or below it. */
const AT_OR_BELOW = `(bare = @name OR substr(bare, -length(@name) - 1) = '.' || @name)`
/** Rows whose `bare` is `@name`, or above or below it. */
const RELATED = `(${AT_OR_BELOW} OR substr(@name, -length(bare) - 1) = '.' || bare)`
/** Every name of domains of other projects than `@project_id`, both of a pair with and without `www`. */
const bareNames = (
  condition: string,
) => `SELECT id, hostname, counterpart, project_id, ${bare('hostname')} AS bare FROM domains WHERE project_id <> @project_id AND ${condition}
  UNION ALL SELECT id, hostname, counterpart, project_id, counterpart FROM domains WHERE project_id <> @project_id AND counterpart IS NOT NULL AND ${condition}`

/** Which domains a list is of. */
interface DomainFilter {
  project_id?: Wanted
  app_id?: Wanted
  status?: Wanted
  q?: string
}

/** SQL of domains and nothing else. */
export function createDomainRepository(db: Db) {
  return {
    page: (
      project_ids: readonly string[] | undefined,
      { q, ...equals }: DomainFilter,
      ...span: Span
    ): Page<DomainRow> =>
      selectPage<DomainRow>(
        db,
        {
          table: 'domains',
          project_ids,
          equals,
          contains: { column: 'hostname', text: q && storedText(q) },
        },
        span,
      ),
    find: (id: string) => db.sql('SELECT * FROM domains WHERE id = ?').get(id) as DomainRow | undefined,
    projectOf: (id: string) =>
      db.sql('SELECT project_id FROM domains WHERE id = ?').pluck().get(id) as string | undefined,
    /** Proven domains, of one project or of all, for certificates. */
    provenNames: (project_id?: string) =>
      db
        .sql(
          `SELECT ${CERTIFIED} FROM domains WHERE ${PROVEN} AND (@project_id IS NULL OR project_id = @project_id)`,
        )
        .all({ project_id: project_id ?? null }) as ProvenDomain[],
    /** The same of a project that have one of these names, or a wildcard above one. */
    provenAt: (project_id: string, names: readonly string[]) =>
      db
        .sql(
          `SELECT ${CERTIFIED} FROM domains WHERE ${PROVEN} AND +project_id = @project_id AND ${NAMED} ORDER BY rowid`,
        )
        .all({
          project_id,
          names: JSON.stringify(names.flatMap((name) => [name, name.replace(/^[^.]*/, '*')])),
        }) as ProvenDomain[],
    provenById: (id: string) =>
      db.sql(`SELECT ${CERTIFIED} FROM domains WHERE ${PROVEN} AND id = ?`).get(id) as
        | ProvenDomain
        | undefined,
    /** Apps that these domains belong to. */
    appsOf: (ids: readonly string[]) =>
      db
        .sql('SELECT DISTINCT app_id FROM domains WHERE id IN (SELECT value FROM json_each(?))')
        .pluck()
        .all(JSON.stringify(ids)) as string[],
    ofApp: (app_id: string) =>
      db.sql('SELECT * FROM domains WHERE app_id = ? ORDER BY rowid').all(app_id) as DomainRow[],
    /** How many domains an app or a project has beside automatic ones. */
    countOf: (owner: { app_id: string } | { project_id: string }): number => {
      const [column, id] = 'app_id' in owner ? ['app_id', owner.app_id] : ['project_id', owner.project_id]
      return db
        .sql(`SELECT count(*) FROM domains WHERE ${column} = ? AND kind <> 'automatic'`)
        .pluck()
        .get(id) as number
    },
    /** How long the rules of all domains of a project are together. */
    charactersOf: (project_id: string) =>
      db
        .sql(
          'SELECT coalesce(sum(length(headers) + length(error_pages) + length(ip_allow)), 0) FROM domains WHERE project_id = ?',
        )
        .pluck()
        .get(project_id) as number,
    /**
     * Domains of these names in a project, whatever their path, app and status; those with a `www` rule have
     * both names.
     */
    ofNames: (names: readonly string[], project_id: string) =>
      db
        .sql(`SELECT * FROM domains WHERE +project_id = @project_id AND ${NAMED} ORDER BY rowid`)
        .all({ names: JSON.stringify(names), project_id }) as DomainRow[],
    ...createDomainPlaces(db),
    ...createAutomaticNames(db),
    insert: (row: DomainRow) =>
      db
        .sql(
          `INSERT INTO domains (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map((name) => `@${name}`).join(', ')})`,
        )
        .run(row),
    update(id: string, change: DomainColumns, at: string) {
      const keys = CHANGEABLE.filter((key) => change[key] !== undefined)
      db.sql(
        `UPDATE domains SET ${[...keys.map((key) => `${key} = @${key}`), 'updated_at = @at'].join(', ')} WHERE id = @id`,
      ).run({ ...change, id, at })
    },
    delete: (id: string) => db.sql('DELETE FROM domains WHERE id = ?').run(id),
    /** Domains of a project that claim one of these names, proven or not, whatever their path. */
    claiming: (names: readonly string[], project_id: string) =>
      db
        .sql(`SELECT * FROM domains WHERE +project_id = @project_id AND status <> 'failed' AND ${NAMED}`)
        .all({ names: JSON.stringify(names), project_id }) as DomainRow[],
    /** Domains of all projects that have proven one of these names. */
    having: (names: readonly string[]) =>
      db
        .sql(`SELECT * FROM domains WHERE ${PROVEN} AND ${NAMED}`)
        .all({ names: JSON.stringify(names) }) as DomainRow[],
    /** Whether another project has proven this name or one above or below it. */
    hasRelative: (name: string, project_id: string): boolean =>
      db
        .sql(`SELECT 1 FROM (${bareNames(`${PROVEN} AND kind <> 'automatic'`)}) WHERE ${RELATED} LIMIT 1`)
        .get({ name, project_id }) !== undefined,
    /** Domains of other projects that wait for a proof of this name or of one above or below it. */
    rivals: (name: string, project_id: string) =>
      db
        .sql(
          `SELECT DISTINCT id, hostname, counterpart, project_id FROM (${bareNames(`status = 'pending'`)}) WHERE ${RELATED}`,
        )
        .all({ name, project_id }) as Pick<DomainRow, 'id' | 'hostname' | 'counterpart' | 'project_id'>[],
    /** Whether a project besides these has lately given up this name or one above or below it. */
    isCoolingDown: (name: string, project_ids: readonly string[], now: string): boolean =>
      db
        .sql(
          `SELECT 1 FROM (SELECT ${bare('hostname')} AS bare FROM domain_cooldowns WHERE until > @now AND project_id NOT IN (SELECT value FROM json_each(@project_ids))) WHERE ${RELATED} LIMIT 1`,
        )
        .get({ name, project_ids: JSON.stringify(project_ids), now }) !== undefined,
    /** Keeps a name for the project that gave it up, and no more of them than its newest so many. */
    coolDown(hostname: string, project_id: string, until: string, most: number): void {
      db.sql(
        'INSERT INTO domain_cooldowns VALUES (@hostname, @project_id, @until) ON CONFLICT (hostname) DO UPDATE SET project_id = @project_id, until = @until',
      ).run({ hostname, project_id, until })
      db.sql(
        `DELETE FROM domain_cooldowns WHERE rowid IN (SELECT rowid FROM domain_cooldowns WHERE project_id = ?
         ORDER BY until DESC, rowid DESC LIMIT -1 OFFSET ?)`,
      ).run(project_id, most)
    },
    /** Forgets that other projects have lately given up this name or one below it. */
    endCoolDowns: (name: string, project_id: string) =>
      db
        .sql(
          `DELETE FROM domain_cooldowns WHERE project_id <> @project_id AND hostname IN (SELECT hostname FROM (SELECT hostname, ${bare('hostname')} AS bare FROM domain_cooldowns) WHERE ${AT_OR_BELOW})`,
        )
        .run({ name, project_id }).changes,
    /** Forgets that this project has lately given up this very name. */
    endOwnCoolDown: (hostname: string, project_id: string) =>
      db.sql('DELETE FROM domain_cooldowns WHERE hostname = ? AND project_id = ?').run(hostname, project_id),
    /** Forgets some of the names whose time is over; returns how many. */
    pruneCoolDowns: (now: string) => forgetSome(db, { table: 'domain_cooldowns', where: 'until <= ?' }, now),
    /**
     * Those whose time has come but these, longest ago first; of each project so many at most.
     * @param ahead time that no domain waits for: one that does was put there by a clock that was wrong.
     */
    due: (now: string, ahead: string, of_each: number, without: ReadonlySet<string>) =>
      db
        .sql(
          `SELECT id FROM (
             SELECT id, next_check_at, row_number() OVER (PARTITION BY project_id ORDER BY next_check_at, id) AS place
             FROM domains WHERE (next_check_at <= ? OR next_check_at > ?) AND id NOT IN (SELECT value FROM json_each(?)))
           WHERE place <= ? ORDER BY next_check_at, id`,
        )
        .pluck()
        .all(now, ahead, JSON.stringify([...without]), of_each) as string[],
    /** Every name that a project has proven by itself. */
    proven: () =>
      db
        .sql(
          `SELECT hostname, project_id FROM domains WHERE ${PROVEN} AND kind <> 'automatic'
       UNION SELECT counterpart, project_id FROM domains WHERE ${PROVEN} AND counterpart IS NOT NULL`,
        )
        .all() as { hostname: string; project_id: string }[],
    /** The domain that proves a name: its own, its pair's, or a wildcard one label above. */
    provenFor: (hostname: string) =>
      db
        .sql(
          `SELECT * FROM domains WHERE ${PROVEN} AND (hostname IN (@hostname, @wildcard) OR counterpart = @hostname) ORDER BY hostname = @wildcard, length(path) LIMIT 1`,
        )
        .get({ hostname, wildcard: hostname.replace(/^[^.]*/, '*') }) as DomainRow | undefined,
    /** Compare-and-set; false when the status has changed meanwhile. */
    setStatus: (id: string, from: DomainStatus, to: DomainStatus, at: string): boolean =>
      db
        .sql('UPDATE domains SET status = ?, updated_at = ? WHERE id = ? AND status = ?')
        .run(to, at, id, from).changes === 1,
    /** Compare-and-set of several at once; the rows that changed. */
    setStatuses: (ids: readonly string[], from: DomainStatus, to: DomainStatus, at: string) =>
      db
        .sql(
          'UPDATE domains SET status = ?, updated_at = ? WHERE status = ? AND id IN (SELECT value FROM json_each(?)) RETURNING *',
        )
        .all(to, at, from, JSON.stringify(ids)) as DomainRow[],
  }
}
export type DomainRepository = ReturnType<typeof createDomainRepository>
