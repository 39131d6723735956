import type { Limits, Processes } from '#server/apps/configuration-schema'
import type { Db } from '#server/kernel/db'
import { forgetSome } from '#server/kernel/forget'
import type { SleepState } from './machine.ts'
import type { Decision, Reservations, Rule } from './schema.ts'

/** What the last step up of a rule was decided on. */
export interface UpBasis {
  from: number
  /** Requests per second at that time. */
  load: number
}
export interface ScalingRow {
  app_id: string
  state: SleepState
  state_since: string | null
  sleep_after_s: number | null
  reservations: Reservations
  rule: Rule | null
  decided: number | null
  up_at: string | null
  down_at: string | null
  up_basis: UpBasis | null
}
export interface ReleaseScaleRow {
  replicas: number | null
  limits: Limits
  processes: Processes
}
export type NewDecision = Omit<Decision, 'at'> & { app_id: string; at: string }

const JSON_COLUMNS = ['reservations', 'rule', 'up_basis'] as const
const parsed = (text: unknown) => (typeof text === 'string' ? (JSON.parse(text) as unknown) : null)

const DECISIONS_KEPT = 500
const EMPTY: Omit<ScalingRow, 'app_id'> = {
  state: 'awake',
  state_since: null,
  sleep_after_s: null,
  reservations: {},
  rule: null,
  decided: null,
  up_at: null,
  down_at: null,
  up_basis: null,
}
const COLUMNS = Object.keys(EMPTY) as (keyof typeof EMPTY)[]

/** SQL of scaling and nothing else. */
export function createScalingRepository(db: Db) {
  const read = (row: Record<string, unknown>): ScalingRow => ({
    ...(row as unknown as ScalingRow),
    ...(Object.fromEntries(JSON_COLUMNS.map((name) => [name, parsed(row[name])])) as Pick<
      ScalingRow,
      (typeof JSON_COLUMNS)[number]
    >),
  })
  const find = (app_id: string): ScalingRow => {
    const row = db.sql('SELECT * FROM app_scaling WHERE app_id = ?').get(app_id) as
      | Record<string, unknown>
      | undefined
    return row ? read(row) : { app_id, ...EMPTY }
  }
  return {
    find,
    /** Rows of apps that have a rule, may fall asleep or do not run: those that are looked at again and again. */
    watched: (): ScalingRow[] =>
      (
        db
          .sql(
            `SELECT * FROM app_scaling WHERE rule IS NOT NULL OR sleep_after_s IS NOT NULL OR state = 'waking'`,
          )
          .all() as Record<string, unknown>[]
      ).map(read),
    reserving: (): ScalingRow[] =>
      (db.sql(`SELECT * FROM app_scaling WHERE reservations <> '{}'`).all() as Record<string, unknown>[]).map(
        read,
      ),
    change(app_id: string, change: Partial<Omit<ScalingRow, 'app_id'>>): void {
      const keys = COLUMNS.filter((key) => change[key] !== undefined)
      if (keys.length === 0) return
      const values = Object.fromEntries(
        keys.map((key) => {
          const value = change[key]
          return [key, value !== null && typeof value === 'object' ? JSON.stringify(value) : value]
        }),
      )
      db.sql('INSERT OR IGNORE INTO app_scaling (app_id) VALUES (?)').run(app_id)
      db.sql(
        `UPDATE app_scaling SET ${keys.map((key) => `${key} = @${key}`).join(', ')} WHERE app_id = @app_id`,
      ).run({ ...values, app_id })
    },
    scaleOf(release_id: string): ReleaseScaleRow | undefined {
      const row = db
        .sql('SELECT replicas, limits, processes FROM release_scales WHERE release_id = ?')
        .get(release_id) as { replicas: number | null; limits: string; processes: string } | undefined
      return (
        row && {
          replicas: row.replicas,
          limits: JSON.parse(row.limits) as Limits,
          processes: JSON.parse(row.processes) as Processes,
        }
      )
    },
    setScale: (release_id: string, app_id: string, { replicas, limits, processes }: ReleaseScaleRow) =>
      db
        .sql(
          `INSERT OR REPLACE INTO release_scales (release_id, app_id, replicas, limits, processes)
           VALUES (?, ?, ?, ?, ?)`,
        )
        .run(release_id, app_id, replicas, JSON.stringify(limits), JSON.stringify(processes)),
    record({ app_id, ...decision }: NewDecision): void {
      db.sql(
        `INSERT INTO scaling_decisions (app_id, at, reason, metric, value, target, from_replicas, to_replicas, outcome, detail)
         VALUES (@app_id, @at, @reason, @metric, @value, @target, @from, @to, @outcome, @detail)`,
      ).run({ app_id, ...decision })
      db.sql(
        `DELETE FROM scaling_decisions WHERE app_id = ? AND id <=
           (SELECT id FROM scaling_decisions WHERE app_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?)`,
      ).run(app_id, app_id, DECISIONS_KEPT)
    },
    decisions: (app_id: string, limit: number): Decision[] =>
      db
        .sql(
          `SELECT at, reason, metric, value, target, from_replicas AS "from", to_replicas AS "to", outcome, detail
           FROM scaling_decisions WHERE app_id = ? ORDER BY id DESC LIMIT ?`,
        )
        .all(app_id, limit) as Decision[],
    prune: (before: string): number =>
      forgetSome(db, { table: 'scaling_decisions', where: 'at < ?' }, before),
  }
}
export type ScalingRepository = ReturnType<typeof createScalingRepository>
