import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import type { Events, PlatformEvent } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import type { Interval } from '../metrics/interval.ts'
import { BUILTIN, type BuiltinRule } from './builtin.ts'
import { isBeyond, readMetric } from './metric.ts'
import type { AlertRepository, RuleRow, StateRow } from './repository.ts'
import { type AlertState, evaluate } from './state.ts'

/** A subject with its newest sample. */
export interface WatchedSubject {
  kind: RuleRow['subject_kind']
  id: string
  project_id: string | null
  name: string
  /** Undefined while nothing is known of it. */
  latest: Interval | undefined
}
export interface WatchPorts {
  /** Every subject that a rule may watch, with its newest sample. */
  subjects(): WatchedSubject[]
  /** Name and project of what an event is about. */
  nameOf(event: PlatformEvent): { id: string; name: string } | undefined
}
export interface WatchOptions {
  db: Db
  clock: Clock
  events: Events
  alerts: AlertRepository
  ports: WatchPorts
}

/** What one evaluation found bad, by subject. */
interface Finding {
  project_id: string | null
  is_bad: boolean
  value: number | null
  message: string
}
interface Told {
  rule: RuleRow
  row: StateRow
  transition: 'fired' | 'resolved'
}

const BY_KEY: ReadonlyMap<string, BuiltinRule> = new Map(BUILTIN.map((rule) => [rule.key, rule]))
const keyOf = (rule_id: string, subject_id: string) => `${rule_id} ${subject_id}`
const stateOf = (row: StateRow): AlertState => ({
  state: row.state,
  since_ms: Date.parse(row.since),
  well_since_ms: row.well_since ? Date.parse(row.well_since) : null,
  fired: row.fired,
})
const isWatched = (rule: RuleRow, { kind, id, project_id }: WatchedSubject): boolean =>
  kind === rule.subject_kind &&
  (rule.subject_id ?? id) === id &&
  (rule.project_id === null || rule.project_id === project_id)
const sentence = (template: string, facts: { name: string; cause?: string; value?: number | null }) =>
  template
    .replace('{name}', () => facts.name)
    .replace('{cause}', () => facts.cause ?? '')
    .replace('{value}', () => String(Math.round(facts.value ?? 0)))
    .trim()

/** Watches metrics and events, moves the states of alerts and tells what changed, in one message per project. */
export function createWatch({ db, clock, events, alerts, ports }: WatchOptions) {
  /** What events have raised and no event has ended yet. */
  const signals = new Map<string, Finding & { until_ms: number | null }>()

  const isSilenced = (rule: RuleRow) =>
    rule.silenced_until !== null && Date.parse(rule.silenced_until) > clock.now()

  const ruleMessage = (rule: RuleRow, name: string, value: number): string => {
    const builtin = rule.builtin ? BY_KEY.get(rule.builtin) : undefined
    if (builtin) return sentence(builtin.message, { name, value })
    const shown = Math.round(value * 100) / 100
    return `${rule.name}: ${rule.metric} of ${name} is ${shown}, ${rule.comparison} ${rule.threshold}.`
  }

  /** What a rule that watches a metric finds now. A subject without a number is left as it is. */
  const findByMetric = (rule: RuleRow, subjects: readonly WatchedSubject[]): Map<string, Finding> => {
    const findings = new Map<string, Finding>()
    for (const { id, project_id, name, latest } of subjects.filter((one) => isWatched(rule, one))) {
      const value = latest ? readMetric(rule.metric!, latest) : null
      if (value === null) continue
      findings.set(id, {
        project_id,
        value,
        is_bad: isBeyond(value, rule.comparison!, rule.threshold!),
        message: ruleMessage(rule, name, value),
      })
    }
    return findings
  }

  const findBySignal = (rule: RuleRow, states: readonly StateRow[]): Map<string, Finding> => {
    const findings = new Map<string, Finding>()
    const ends_after_s = BY_KEY.get(rule.builtin ?? '')?.ends_after_s
    for (const row of states) {
      // What an earlier process heard holds until its end is heard, or until its time is over.
      const is_over = ends_after_s !== undefined && clock.now() - Date.parse(row.since) > ends_after_s * 1000
      const is_bad = row.state === 'firing' && row.well_since === null && !is_over
      findings.set(row.subject_id, { ...row, value: null, is_bad })
    }
    for (const [key, signal] of signals) {
      const [rule_id, subject_id] = key.split(' ')
      if (rule_id !== rule.id) continue
      const is_over = signal.until_ms !== null && clock.now() >= signal.until_ms
      findings.set(subject_id!, { ...signal, is_bad: signal.is_bad && !is_over })
      if (!signal.is_bad || is_over) signals.delete(key)
    }
    return findings
  }

  const move = (rule: RuleRow, subject_id: string, found: Finding, before: StateRow | undefined): Told[] => {
    const { next, transition } = evaluate(before && stateOf(before), found.is_bad, rule.for_s, clock.now())
    if (!next) {
      if (before) alerts.clearState(rule.id, subject_id)
      return []
    }
    const iso = (ms: number) => new Date(ms).toISOString()
    const row: StateRow = {
      rule_id: rule.id,
      subject_id,
      project_id: found.project_id,
      state: next.state,
      since: iso(next.since_ms),
      well_since: next.well_since_ms === null ? null : iso(next.well_since_ms),
      value: found.value,
      message: found.is_bad || !before ? found.message : before.message,
      fired: next.fired,
    }
    const is_same =
      before &&
      before.state === row.state &&
      before.since === row.since &&
      before.well_since === row.well_since
    if (!is_same) alerts.setState(row)
    if (transition === 'fired')
      alerts.insertHistory({
        id: newId('evt'),
        rule_id: rule.id,
        rule_name: rule.name,
        project_id: row.project_id,
        subject_id,
        severity: rule.severity,
        message: row.message,
        value: row.value,
        fired_at: clock.iso(),
        resolved_at: null,
      })
    if (transition === 'resolved') alerts.resolveHistory(rule.id, subject_id, clock.iso())
    return transition ? [{ rule, row, transition }] : []
  }

  /** One event per project and kind of change, however many alerts: a hundred crashes are one message. */
  const emit = (told: readonly Told[]): void => {
    const groups = Map.groupBy(
      told.filter(({ rule }) => !isSilenced(rule)),
      ({ row, transition, rule }) => `${row.project_id ?? ''} ${transition} ${rule.channels}`,
    )
    for (const group of groups.values()) {
      const { row, transition, rule } = group[0]!
      const is_fired = transition === 'fired'
      const messages = group.map((one) => one.row.message)
      const more = messages.length > 1 ? ` And ${messages.length - 1} more.` : ''
      events.append({
        type: is_fired ? 'alert.firing' : 'alert.resolved',
        project_id: row.project_id,
        payload: {
          message: is_fired ? `${messages[0]}${more}` : `Over: ${messages[0]}${more}`,
          severity: rule.severity,
          channels: JSON.parse(rule.channels) as string[],
          alerts: group.slice(0, 100).map((one) => ({
            rule_id: one.rule.id,
            name: one.rule.name,
            subject_id: one.row.subject_id,
            message: one.row.message,
            value: one.row.value,
          })),
        },
      })
    }
  }

  return {
    /** Remembers what an event raises or ends, until the next evaluation. True when it is about an alert. */
    hear(event: PlatformEvent, rules: readonly RuleRow[]): boolean {
      let is_heard = false
      for (const rule of rules) {
        const builtin = rule.builtin ? BY_KEY.get(rule.builtin) : undefined
        const is_raised = builtin?.raised_by?.includes(event.type) ?? false
        const is_bad = is_raised && !builtin?.unless?.(event)
        if (!builtin || !(is_bad || builtin.ended_by?.includes(event.type))) continue
        const subject = ports.nameOf(event)
        if (!subject) continue
        const { error, reason, message } = event.payload
        const cause = [error, reason, message].find((text) => typeof text === 'string') as string | undefined
        signals.set(keyOf(rule.id, subject.id), {
          project_id: event.project_id,
          is_bad,
          value: null,
          message: sentence(builtin.message, { name: subject.name, cause }),
          until_ms: builtin.ends_after_s ? clock.now() + builtin.ends_after_s * 1000 : null,
        })
        is_heard = true
      }
      return is_heard
    },
    /**
     * Moves the alerts of some rules to the state that they are in now, in one transaction with the events that tell
     * so. `most` is how many of them: what is left has its turn at the next evaluation.
     */
    evaluate(rules: readonly RuleRow[], subjects: readonly WatchedSubject[], most = Infinity): void {
      db.tx(() => {
        const told: Told[] = []
        for (const rule of rules) {
          if (told.length >= most) break
          if (rule.enabled === 0) continue
          const before = alerts.statesOf(rule.id)
          const by_subject = new Map(before.map((row) => [row.subject_id, row]))
          const findings = rule.metric ? findByMetric(rule, subjects) : findBySignal(rule, before)
          // A subject that is gone, or in another project by now, has no alert either.
          if (rule.metric)
            for (const row of before)
              if (!subjects.some((one) => one.id === row.subject_id && isWatched(rule, one)))
                findings.set(row.subject_id, { ...row, is_bad: false })
          for (const [subject_id, found] of findings)
            told.push(...move(rule, subject_id, found, by_subject.get(subject_id)))
        }
        emit(told)
      })
    },
  }
}
export type Watch = ReturnType<typeof createWatch>
