import type { Db } from '#server/kernel/db'
import { forgetSome } from '#server/kernel/forget'
import { createMeta } from '#server/kernel/meta'
import { counted, orderBy, type Page, type Wanted, wantedValues, type Span } from '#server/kernel/page'

/** A row of `audit_log`. */
export interface AuditRow {
  seq: number
  id: string
  created_at: string
  actor_id: string | null
  actor_email: string | null
  method: string
  credential_id: string | null
  action: string
  resource_type: string
  resource_id: string | null
  project_id: string | null
  before: string | null
  after: string | null
  address: string | null
  request_id: string | null
}

/** What a reader of the trail asks for; undefined fields do not filter. */
export interface AuditFilter {
  /** Only this project; undefined for the whole installation. */
  project_id?: string
  /** User id or e-mail address. */
  actor?: Wanted
  /** Whole action, or its beginning with a dot at the end: `app.`. */
  action?: Wanted
  /** Resource id, or kind of resource. */
  resource?: Wanted
  /** ISO times; `from` is included, `to` is not. */
  from?: string
  to?: string
}

const isId = (resource: string): boolean => /^[a-z]+_[0-9a-z]{20}$/.test(resource)

type Condition = [part: string, ...values: string[]]

function where(filter: AuditFilter): { clause: string; values: unknown[] } {
  const parts: string[] = []
  const values: unknown[] = []
  const add = (part: string, ...given: unknown[]) => {
    parts.push(part)
    values.push(...given)
  }
  if (filter.project_id !== undefined) add('project_id = ?', filter.project_id)
  const addAny = (desired: Wanted, toCondition: (value: string) => Condition) => {
    const conditions = wantedValues(desired)?.map(toCondition)
    if (conditions)
      add(
        `(${conditions.map(([part]) => part).join(' OR ')})`,
        ...conditions.flatMap(([, ...given]) => given),
      )
  }
  addAny(filter.actor, (one) => [one.includes('@') ? 'actor_email = ?' : 'actor_id = ?', one.toLowerCase()])
  addAny(filter.action, (one) =>
    one.endsWith('.') ? ['action >= ? AND action < ?', one, `${one.slice(0, -1)}/`] : ['action = ?', one],
  )
  addAny(filter.resource, (one) => [isId(one) ? 'resource_id = ?' : 'resource_type = ?', one])
  if (filter.from !== undefined) add('created_at >= ?', filter.from)
  if (filter.to !== undefined) add('created_at < ?', filter.to)
  return { clause: parts.length ? `WHERE ${parts.join(' AND ')}` : '', values }
}

/** Lines that are looked through for a name: what is done often does not tell one. */
const MOST_LINES = 50
/** A field of a line's values. Those without it are not parsed: they may be 16 KiB, and a name is looked for in many. */
const fieldOf = (values: 'before' | 'after', field: string) =>
  `CASE WHEN instr(${values}, '"${field}":') > 0 THEN ${values} ->> '$.${field}' END`
/** What a person knows a resource by, in the fields of a line. */
const nameIn = (field: string) => `coalesce(${fieldOf('after', field)}, ${fieldOf('before', field)})`
const NAME = `CASE resource_type WHEN 'user' THEN ${nameIn('email')} WHEN 'domain' THEN ${nameIn('hostname')} ELSE ${nameIn('name')} END`

/** What is read at once of the trail, which takes some milliseconds: a line may be 32 KiB long. */
const PIECE = { rows: 50, looked_through: 10_000 }

/** The triggers of the table let a deletion through only while this says how far it may go. */
const PRUNE_BEFORE = 'audit_log.prune_before'

/** SQL of the audit trail and nothing else. */
export function createAuditRepository(db: Db) {
  const meta = createMeta(db)
  /** The first line and the last one. Asked for both at once, SQLite would look through all rows. */
  const ends = () =>
    db
      .sql(
        `SELECT coalesce((SELECT min(seq) FROM audit_log), 0) AS first,
           coalesce((SELECT max(seq) FROM audit_log), -1) AS last`,
      )
      .get() as { first: number; last: number }
  /**
   * A page of the whole trail. Lines are numbered as they are written, and only the oldest go:
   * where that has left no gap, it is known where the page begins, and nothing is passed over on
   * the way to it.
   */
  const pageOfAll = ([limit, offset, sort]: Span, total: number): AuditRow[] => {
    const { first, last } = ends()
    const order = orderBy(sort, 'seq DESC')
    if (last - first + 1 !== total)
      return db.sql(`SELECT * FROM audit_log ${order} LIMIT ? OFFSET ?`).all(limit, offset) as AuditRow[]
    const is_upwards = sort?.[0]?.descending === false
    return db
      .sql(`SELECT * FROM audit_log WHERE seq ${is_upwards ? '>=' : '<='} ? ${order} LIMIT ?`)
      .all(is_upwards ? first + offset : last - offset, limit) as AuditRow[]
  }
  return {
    insert: (row: Omit<AuditRow, 'seq'>) =>
      db
        .sql(
          `INSERT INTO audit_log (id, created_at, actor_id, actor_email, method, credential_id, action, resource_type, resource_id, project_id, before, after, address, request_id)
       VALUES (@id, @created_at, @actor_id, @actor_email, @method, @credential_id, @action, @resource_type, @resource_id, @project_id, @before, @after, @address, @request_id)`,
        )
        .run(row),
    page(filter: AuditFilter, ...[limit, offset, sort]: Span): Page<AuditRow> {
      const { clause, values } = where(filter)
      const order = orderBy(sort, 'seq DESC')
      const { project_id, ...rest } = filter
      const asked = Object.entries(rest).filter(([, value]) => value !== undefined)
      if (asked.length === 0) {
        const all = counted(db, 'audit_log', project_id === undefined ? undefined : [project_id])
        if (project_id === undefined) return { rows: pageOfAll([limit, offset, sort], all), total: all }
        const rows = db.sql(`SELECT * FROM audit_log ${clause} ${order} LIMIT ? OFFSET ?`)
        return {
          rows: rows.all(...values, limit, offset) as AuditRow[],
          total: all,
        }
      }
      const is_of_one = asked.length === 1 && wantedValues(filter.actor)?.map(isId).join() === 'true'
      // A line has kilobytes: what seldom matches is looked for in an index that has all that is
      // asked for.
      const is_told_apart =
        wantedValues(filter.resource)?.some(isId) ||
        (project_id === undefined && (filter.action !== undefined || is_of_one))
      const from = `FROM audit_log ${is_told_apart ? '' : 'INDEXED BY audit_log_listed'} ${clause}`
      const rows = db.sql(
        `SELECT * FROM audit_log WHERE seq IN (SELECT seq ${from} ${order} LIMIT ? OFFSET ?) ${order}`,
      )
      const total = db.sql(`SELECT count(*) ${from}`).pluck()
      return {
        rows: rows.all(...values, limit, offset) as AuditRow[],
        total: total.get(...values) as number,
      }
    },
    /**
     * Tells what a resource was called when a line was written, as far as the trail tells. Each
     * line is looked at once, however many of a page ask for it: a page may be of one resource
     * alone.
     */
    names(): (resource_id: string, seq: number) => string | undefined {
      const named = db.sql(`SELECT ${NAME} FROM audit_log WHERE seq = ?`).pluck()
      const known = new Map<number, string | null>()
      const nameOf = (seq: number): string | null => {
        if (!known.has(seq)) known.set(seq, named.get(seq) as string | null)
        return known.get(seq)!
      }
      const lines = (order: 'ASC' | 'DESC') =>
        db
          .sql(
            `SELECT seq FROM audit_log WHERE resource_id = ? AND seq <= ? ORDER BY seq ${order} LIMIT ${MOST_LINES}`,
          )
          .pluck()
      return (resource_id, seq) => {
        for (const order of ['DESC', 'ASC'] as const)
          for (const line of lines(order).all(resource_id, seq) as number[]) {
            const name = nameOf(line)
            if (name !== null) return name
          }
        return undefined
      }
    },
    /**
     * All rows that match, read as far as somebody asks. A piece looks through a bounded part of
     * the trail, so that it may be empty: what seldom or never matches is not looked for in one
     * go. What is written meanwhile is no part of it.
     */
    *pieces(filter: AuditFilter, order: 'oldest' | 'newest'): Generator<AuditRow[]> {
      const { clause, values } = where(filter)
      const select = db.sql(
        `SELECT * FROM audit_log ${clause ? `${clause} AND` : 'WHERE'} seq BETWEEN ? AND ?
         ORDER BY seq ${order === 'oldest' ? 'ASC' : 'DESC'} LIMIT ${PIECE.rows}`,
      )
      let { first, last } = ends()
      while (first <= last) {
        const [from, to] =
          order === 'oldest'
            ? [first, Math.min(last, first + PIECE.looked_through - 1)]
            : [Math.max(first, last - PIECE.looked_through + 1), last]
        const rows = select.all(...values, from, to) as AuditRow[]
        const end = rows.length === PIECE.rows ? rows.at(-1)!.seq : undefined
        if (order === 'oldest') first = (end ?? to) + 1
        else last = (end ?? from) - 1
        yield rows
      }
    },
    /**
     * Forgets some of what is older than the cut, the only deletion that the table's triggers let
     * through; returns how much.
     */
    prune: (cut: string): number =>
      db.tx(() => {
        meta.set(PRUNE_BEFORE, cut)
        const count = forgetSome(db, { table: 'audit_log', where: 'created_at < ?' }, cut)
        meta.remove(PRUNE_BEFORE)
        return count
      }),
  }
}
export type AuditRepository = ReturnType<typeof createAuditRepository>
