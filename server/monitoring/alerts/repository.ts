import type { Db } from '#server/kernel/db'
import { forgetSome } from '#server/kernel/forget'
import { type Page, selectPage, type Span } from '#server/kernel/page'
import type { AlertMetric } from './metric.ts'

/** A row of `alert_rules`. */
export interface RuleRow {
  id: string
  project_id: string | null
  builtin: string | null
  name: string
  subject_kind: 'server' | 'app' | 'database'
  subject_id: string | null
  metric: AlertMetric | null
  comparison: 'above' | 'below' | null
  threshold: number | null
  for_s: number
  severity: 'info' | 'warning' | 'critical'
  channels: string
  enabled: number
  silenced_until: string | null
  created_by: string | null
  created_at: string
  updated_at: string
}
/** A row of `alert_states`. */
export interface StateRow {
  rule_id: string
  subject_id: string
  project_id: string | null
  state: 'pending' | 'firing' | 'resolved'
  since: string
  well_since: string | null
  value: number | null
  message: string
  fired: number
}
/** Something that fires, with what its rule is called. */
export interface Firing extends Pick<StateRow, 'rule_id' | 'subject_id' | 'since' | 'message'> {
  name: string
  severity: RuleRow['severity']
}
/** A row of `alert_history`. */
export interface HistoryRow {
  id: string
  rule_id: string
  rule_name: string
  project_id: string | null
  subject_id: string
  severity: RuleRow['severity']
  message: string
  value: number | null
  fired_at: string
  resolved_at: string | null
}

const RULE =
  'id, project_id, builtin, name, subject_kind, subject_id, metric, comparison, threshold, for_s, severity, channels, enabled, silenced_until, created_by, created_at, updated_at'
const STATE = 'rule_id, subject_id, project_id, state, since, well_since, value, message, fired'
/** Of what a rule found, and of what fires, so many are shown where there are thousands. */
const MOST_OF_RULE = 100
const MOST_FIRING = 500
const SEVERITY = `CASE state WHEN 'firing' THEN 3 WHEN 'pending' THEN 2 ELSE 1 END`
const VISIBLE = '(@ids IS NULL OR project_id IN (SELECT value FROM json_each(@ids)))'
const idsOf = (project_ids: readonly string[] | undefined) =>
  project_ids ? JSON.stringify(project_ids) : null
/** Alerts of one project whose history is kept. */
const HISTORY_KEPT = 2_000
const HISTORY =
  'id, rule_id, rule_name, project_id, subject_id, severity, message, value, fired_at, resolved_at'
const named = (columns: string) => columns.replace(/\w+/g, '@$&')

/** SQL of alerts and nothing else. */
export function createAlertRepository(db: Db) {
  return {
    rules: () => db.sql('SELECT * FROM alert_rules ORDER BY rowid').all() as RuleRow[],
    /** Rules of one project; of the installation for null. */
    rulesIn: (project_id: string | null) =>
      db.sql('SELECT * FROM alert_rules WHERE project_id IS ? ORDER BY rowid').all(project_id) as RuleRow[],
    /** Projects that have rules of their own. */
    projects: () =>
      db
        .sql('SELECT DISTINCT project_id FROM alert_rules WHERE project_id IS NOT NULL')
        .pluck()
        .all() as string[],
    rule: (id: string) => db.sql('SELECT * FROM alert_rules WHERE id = ?').get(id) as RuleRow | undefined,
    countOf: (project_id: string) =>
      db.sql('SELECT count(*) FROM alert_rules WHERE project_id = ?').pluck().get(project_id) as number,
    insertRule: (row: RuleRow) =>
      db.sql(`INSERT INTO alert_rules (${RULE}) VALUES (${named(RULE)})`).run(row),
    updateRule: (row: RuleRow) =>
      db
        .sql(
          `UPDATE alert_rules SET name = @name, metric = @metric, comparison = @comparison, threshold = @threshold,
             for_s = @for_s, severity = @severity, channels = @channels, enabled = @enabled,
             silenced_until = @silenced_until, updated_at = @updated_at WHERE id = @id`,
        )
        .run(row),
    /** Rules that watch this subject alone. */
    rulesOf: (subject_id: string) =>
      db.sql('SELECT * FROM alert_rules WHERE subject_id = ?').all(subject_id) as RuleRow[],
    moveRule: (row: Pick<RuleRow, 'id' | 'project_id' | 'channels' | 'updated_at'>) =>
      db
        .sql(
          'UPDATE alert_rules SET project_id = @project_id, channels = @channels, updated_at = @updated_at WHERE id = @id',
        )
        .run(row),
    /** Rules whose silence was over by then. */
    silencedUntil: (at: string) =>
      db.sql('SELECT * FROM alert_rules WHERE silenced_until <= ?').all(at) as RuleRow[],
    endSilence: (id: string) => db.sql('UPDATE alert_rules SET silenced_until = NULL WHERE id = ?').run(id),
    deleteRule: (id: string) => db.sql('DELETE FROM alert_rules WHERE id = ?').run(id),
    /** The worst state of each rule that has any, as these projects (undefined: all) see it. */
    worst: (project_ids: readonly string[] | undefined) =>
      db
        .sql(`SELECT rule_id, max(${SEVERITY}) AS rank FROM alert_states WHERE ${VISIBLE} GROUP BY rule_id`)
        .all({ ids: idsOf(project_ids) }) as { rule_id: string; rank: number }[],
    /** States of a rule as these projects see them, the worst first. */
    shown: (rule_id: string, project_ids: readonly string[] | undefined) =>
      db
        .sql(
          `SELECT * FROM alert_states WHERE rule_id = @rule_id AND ${VISIBLE}
             ORDER BY ${SEVERITY} DESC, subject_id LIMIT ${MOST_OF_RULE}`,
        )
        .all({ rule_id, ids: idsOf(project_ids) }) as StateRow[],
    /** What fires in these projects, with its rule. */
    firing: (project_ids: readonly string[] | undefined) =>
      db
        .sql(
          `SELECT rule_id, name, severity, alert_states.subject_id, since, message FROM alert_states
             JOIN alert_rules ON alert_rules.id = rule_id
             WHERE state = 'firing' AND (@ids IS NULL OR alert_states.project_id IN (SELECT value FROM json_each(@ids)))
             LIMIT ${MOST_FIRING}`,
        )
        .all({ ids: idsOf(project_ids) }) as Firing[],
    countFiring: (project_ids: readonly string[] | undefined) =>
      db
        .sql(`SELECT count(*) FROM alert_states WHERE state = 'firing' AND ${VISIBLE}`)
        .pluck()
        .get({ ids: idsOf(project_ids) }) as number,
    state: (rule_id: string, subject_id: string) =>
      db.sql('SELECT * FROM alert_states WHERE rule_id = ? AND subject_id = ?').get(rule_id, subject_id) as
        | StateRow
        | undefined,
    /** States of a rule, those of the next subjects. */
    statesOf: (rule_id: string, after_subject: string, limit: number) =>
      db
        .sql('SELECT * FROM alert_states WHERE rule_id = ? AND subject_id > ? ORDER BY subject_id LIMIT ?')
        .all(rule_id, after_subject, limit) as StateRow[],
    /** What fires of a rule. */
    firingOf: (rule_id: string) =>
      db.sql(`SELECT * FROM alert_states WHERE rule_id = ? AND state = 'firing'`).all(rule_id) as StateRow[],
    clearStates: (rule_id: string) => db.sql('DELETE FROM alert_states WHERE rule_id = ?').run(rule_id),
    setState: (row: StateRow) =>
      db.sql(`INSERT OR REPLACE INTO alert_states (${STATE}) VALUES (${named(STATE)})`).run(row),
    clearState: (rule_id: string, subject_id: string) =>
      db.sql('DELETE FROM alert_states WHERE rule_id = ? AND subject_id = ?').run(rule_id, subject_id),
    /** What rules of the installation and those of this subject alone found goes to another project. */
    relocate: (subject_id: string, project_id: string) =>
      db
        .sql(
          `UPDATE alert_states SET project_id = @project_id WHERE subject_id = @subject_id
             AND rule_id IN (SELECT id FROM alert_rules WHERE project_id IS NULL OR subject_id = @subject_id)`,
        )
        .run({ subject_id, project_id }),
    /** Of its project the newest are kept: a rule that is turned off and on again finds all of its apps anew. */
    insertHistory(row: HistoryRow): void {
      db.sql(`INSERT INTO alert_history (${HISTORY}) VALUES (${named(HISTORY)})`).run(row)
      db.sql(
        `DELETE FROM alert_history WHERE resolved_at IS NOT NULL AND rowid = (SELECT rowid FROM alert_history
           WHERE project_id IS ? ORDER BY rowid DESC LIMIT 1 OFFSET ?)`,
      ).run(row.project_id, HISTORY_KEPT)
    },
    resolveHistory: (rule_id: string, subject_id: string, at: string) =>
      db
        .sql(
          'UPDATE alert_history SET resolved_at = ? WHERE rule_id = ? AND subject_id = ? AND resolved_at IS NULL',
        )
        .run(at, rule_id, subject_id),
    resolveAll: (rule_id: string, at: string) =>
      db
        .sql('UPDATE alert_history SET resolved_at = ? WHERE rule_id = ? AND resolved_at IS NULL')
        .run(at, rule_id),
    /** Alerts of these projects, newest first; with `installation` those that belong to none as well. */
    history: (project_ids: readonly string[] | undefined, ...span: Span): Page<HistoryRow> =>
      selectPage<HistoryRow>(
        db,
        {
          table: 'alert_history',
          project_ids,
        },
        span,
      ),
    prune: (before: string) =>
      forgetSome(db, { table: 'alert_history', where: 'fired_at < ? AND resolved_at IS NOT NULL' }, before),
  }
}
export type AlertRepository = ReturnType<typeof createAlertRepository>
