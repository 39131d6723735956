import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import type { Events, PlatformEvent } from '#server/kernel/events'
import { newId } from '#server/kernel/ids'
import { createPace, type Pace } from '#server/kernel/pace'
import { type ToldAlert, toldOf } from '#server/kernel/told-alerts'
import type { Interval } from '../metrics/interval.ts'
import { BUILTIN, type BuiltinRule, sentence } from './builtin.ts'
import { isBeyond, readMetric } from './metric.ts'
import type { AlertRepository, RuleRow, StateRow } from './repository.ts'
import { type AlertState, evaluate } from './state.ts'

/** Something that was sampled of late, with its newest sample. */
export interface WatchedSubject {
  kind: RuleRow['subject_kind']
  id: string
  project_id: string | null
  name: string
  latest: Interval
}
export interface WatchPorts {
  /** What was sampled of late: what runs, and the server. */
  subjects(): WatchedSubject[]
  /** Project of an app or database; undefined when there is none. */
  projectOf(kind: 'app' | 'database', id: string): string | undefined
  /** App that the subject of an alert is, or is a part of. */
  appOf(subject_id: string): string | undefined
  /** Name and project of what an event is about. */
  nameOf(event: PlatformEvent): { id: string; name: string } | undefined
  /** A webhook that tells; undefined when there is none. Administrators alone may use one for all projects. */
  channel(id: string): { project_id: string; all_projects: boolean } | undefined
}
export interface WatchOptions {
  db: Db
  clock: Clock
  events: Events
  alerts: AlertRepository
  ports: WatchPorts
}

/** Alerts that are read and moved in one piece. */
const AT_ONCE = 200
function* inPieces<T>(list: readonly T[]): Generator<T[]> {
  for (let at = 0; at < list.length; at += AT_ONCE) yield list.slice(at, at + AT_ONCE)
}

/** What one evaluation found bad, by subject. */
interface Finding {
  project_id: string | null
  is_bad: boolean
  value: number | null
  message: string
  /** Type of the event that brought it. */
  event?: string | undefined
  /** App that the event was about. */
  app_id?: string | null | undefined
}
/** A finding that an event brought, and until when it holds. */
interface Signal extends Finding {
  until_ms: number | null
}
interface Move {
  rule: RuleRow
  subject_id: string
  found: Finding
}
interface Told extends Pick<Finding, 'event' | 'app_id'> {
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

/** Watches metrics and events, moves the states of alerts and tells what changed, in one message per project. */
export function createWatch({ db, clock, events, alerts, ports }: WatchOptions) {
  /** What events have raised and no event has ended yet. */
  const signals = new Map<string, Signal>()
  /** Of these, what was heard since the last evaluation. */
  const heard = new Set<string>()

  async function* statePages(rule_id: string, pace: Pace) {
    for (let after = ''; ; ) {
      const rows = alerts.statesOf(rule_id, after, AT_ONCE)
      if (rows.length > 0) yield rows
      if (rows.length < AT_ONCE) return
      after = rows.at(-1)!.subject_id
      const rest = pace.rest()
      if (rest) await rest
    }
  }

  const isSilenced = (rule: RuleRow) =>
    rule.silenced_until !== null && Date.parse(rule.silenced_until) > clock.now()

  const ruleMessage = (rule: RuleRow, name: string, value: number): string => {
    const builtin = rule.builtin ? BY_KEY.get(rule.builtin) : undefined
    if (builtin) return sentence(builtin.message, { name, value })
    const shown = Math.round(value * 100) / 100
    return `${rule.name}: ${rule.metric} of ${name} is ${shown}, ${rule.comparison} ${rule.threshold}.`
  }

  /** What a rule that watches a metric finds now of one subject; undefined where there is no number. */
  const findByMetric = (rule: RuleRow, { project_id, name, latest }: WatchedSubject): Finding | undefined => {
    const value = readMetric(rule.metric!, latest)
    if (value === null) return undefined
    return {
      project_id,
      value,
      is_bad: isBeyond(value, rule.comparison!, rule.threshold!),
      message: ruleMessage(rule, name, value),
    }
  }
  /** What an event raised or ended, as long as its time is not over. */
  const findBySignal = (key: string, signal: Signal): Finding => {
    const is_over = signal.until_ms !== null && clock.monotonic_ms() >= signal.until_ms
    if (!signal.is_bad || is_over) signals.delete(key)
    return { ...signal, is_bad: signal.is_bad && !is_over }
  }
  /** What an earlier process heard holds until its end is heard, or until its time is over. */
  const findByState = (rule: RuleRow, row: StateRow): Finding => {
    const ends_after_s = BY_KEY.get(rule.builtin ?? '')?.ends_after_s
    // What began far ahead was told by a clock that was wrong.
    const since_ms = Math.abs(clock.now() - Date.parse(row.since))
    const is_over = ends_after_s !== undefined && since_ms > ends_after_s * 1000
    return { ...row, value: null, is_bad: row.state === 'firing' && row.well_since === null && !is_over }
  }

  /** What a finding makes of an alert; `row` is undefined where it is well and nothing is remembered. */
  const nextOf = (rule: RuleRow, subject_id: string, found: Finding, before: StateRow | undefined) => {
    const { next, transition } = evaluate(before && stateOf(before), found.is_bad, rule.for_s, clock.now())
    if (!next) return { row: undefined, transition, is_same: !before }
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
      before?.state === row.state && before.since === row.since && before.well_since === row.well_since
    return { row, transition, is_same }
  }
  const move = (rule: RuleRow, subject_id: string, found: Finding): Told[] => {
    const before = alerts.state(rule.id, subject_id)
    const { row, transition, is_same } = nextOf(rule, subject_id, found, before)
    if (!row) {
      if (before) alerts.clearState(rule.id, subject_id)
      return []
    }
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
    return transition ? [{ rule, row, transition, event: found.event, app_id: found.app_id }] : []
  }

  /** Receivers for an alert of a project: members hear of it, and not of what others have. */
  const channelsOf = (rule: RuleRow, project_id: string | null): string[] =>
    (JSON.parse(rule.channels) as string[]).filter((id) => {
      const found = ports.channel(id)
      return project_id === null || found?.all_projects || found?.project_id === project_id
    })

  const toldAlert = ({ rule, row, app_id }: Told): ToldAlert => ({
    rule_id: rule.id,
    name: rule.name,
    severity: rule.severity,
    subject_id: row.subject_id,
    app_id: app_id ?? ports.appOf(row.subject_id) ?? null,
    message: row.message,
    value: row.value,
  })
  /** One event per project and kind of change, however many alerts: a hundred crashes are one message. */
  const emit = (told: readonly Told[]): void => {
    const groups = Map.groupBy(
      told.filter(({ rule }) => !isSilenced(rule)),
      ({ row, transition, rule, event }) =>
        `${row.project_id ?? ''} ${transition} ${rule.channels} ${event ?? ''}`,
    )
    for (const group of groups.values()) {
      const { row, transition, rule, event } = group[0]!
      events.append({
        type: transition === 'fired' ? 'alert.firing' : 'alert.resolved',
        project_id: row.project_id,
        payload: {
          ...toldOf(group.map(toldAlert), transition === 'fired'),
          channels: channelsOf(rule, row.project_id),
          ...(event ? { event } : {}),
        },
      })
    }
  }

  /** Moves alerts in one transaction with the events that tell so; rules may have changed since they were looked at. */
  const write = (moves: readonly Move[]): void => {
    if (moves.length === 0) return
    db.tx(() => {
      const rules = new Map(moves.map(({ rule }) => [rule.id, alerts.rule(rule.id)]))
      emit(
        moves.flatMap(({ rule, subject_id, found }) => {
          const now = rules.get(rule.id)
          return now?.enabled === 1 && now.updated_at === rule.updated_at ? move(rule, subject_id, found) : []
        }),
      )
    })
  }
  /** Whose alerts an event moves. Versions before this one had one alert for all cron jobs, or checks, of an app. */
  const subjectsOf = (rule: RuleRow, id: string, { app_id }: PlatformEvent, is_bad: boolean): string[] => {
    const is_of_app = app_id !== null && app_id !== id && alerts.state(rule.id, app_id) !== undefined
    return !is_bad && is_of_app ? [id, app_id] : [id]
  }
  /** What signals with these keys make of alerts. */
  const movesOf = (keys: readonly string[], rules: readonly RuleRow[]): Move[] =>
    keys.flatMap((key) => {
      const [rule_id, subject_id = ''] = key.split(' ')
      const signal = signals.get(key)
      const rule = rules.find(({ id, enabled }) => id === rule_id && enabled === 1)
      return signal && rule ? [{ rule, subject_id, found: findBySignal(key, signal) }] : []
    })

  return {
    /** Tells of what fires of a rule as if it had begun now. Part of a transaction. */
    tellFiring: (rule: RuleRow): void =>
      emit(alerts.firingOf(rule.id).map((row) => ({ rule, row, transition: 'fired' as const }))),
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
        for (const id of subjectsOf(rule, subject.id, event, is_bad)) {
          heard.add(keyOf(rule.id, id))
          signals.set(keyOf(rule.id, id), {
            project_id: event.project_id,
            is_bad,
            event: event.type,
            app_id: event.app_id,
            value: null,
            message: sentence(builtin.message, { name: subject.name, cause }),
            until_ms: builtin.ends_after_s ? clock.monotonic_ms() + builtin.ends_after_s * 1000 : null,
          })
        }
        is_heard = true
      }
      return is_heard
    },
    /** Moves the alerts that events were heard about since the last time, of all of them together. */
    evaluateHeard(rules: readonly RuleRow[]): void {
      const keys = [...heard]
      heard.clear()
      write(movesOf(keys, rules))
    },
    /** Moves what time alone changes of alerts that events raised, with others served in between. */
    async evaluateSignals(rules: readonly RuleRow[]): Promise<void> {
      const pace = createPace('alerts')
      for (const keys of inPieces([...signals.keys()])) {
        write(movesOf(keys, rules))
        await pace.pause()
      }
      for (const rule of rules) {
        if (rule.enabled === 0) continue
        for await (const rows of statePages(rule.id, pace))
          write(
            rows.flatMap((row) => {
              const found = findByState(rule, row)
              const is_heard = signals.has(keyOf(rule.id, row.subject_id))
              const is_same = nextOf(rule, row.subject_id, found, row).is_same
              return is_heard || is_same ? [] : [{ rule, subject_id: row.subject_id, found }]
            }),
          )
      }
    },
    /**
     * Moves the alerts of rules that watch metrics to the state that they are in now, with others served while it is
     * looked for. `most` is how many of them: what is left has its turn at the next evaluation. A subject without a
     * sample is left as it is; one that is gone, or in another project by now, has no alert either.
     */
    async evaluate(rules: readonly RuleRow[], subjects: readonly WatchedSubject[], most = Infinity) {
      const pace = createPace('alerts')
      const moves: Move[] = []
      const consider = (rule: RuleRow, subject_id: string, found: Finding, before: StateRow | undefined) => {
        if (!nextOf(rule, subject_id, found, before).is_same) moves.push({ rule, subject_id, found })
      }
      const projects = new Map<string, string | null | undefined>()
      const projectOf = (kind: WatchedSubject['kind'], id: string) => {
        if (!projects.has(id)) projects.set(id, kind === 'server' ? null : ports.projectOf(kind, id))
        return projects.get(id)
      }
      for (const rule of rules) {
        if (rule.enabled === 0 || moves.length >= most) continue
        const states = new Map<string, StateRow>()
        for await (const rows of statePages(rule.id, pace))
          for (const row of rows) states.set(row.subject_id, row)
        for (const subject of subjects) {
          const rest = pace.rest()
          if (rest) await rest
          if (moves.length >= most || !isWatched(rule, subject)) continue
          const found = findByMetric(rule, subject)
          if (found) consider(rule, subject.id, found, states.get(subject.id))
          states.delete(subject.id)
        }
        for (const row of states.values()) {
          const rest = pace.rest()
          if (rest) await rest
          if (moves.length >= most) break
          const project_id = projectOf(rule.subject_kind, row.subject_id)
          const is_its =
            project_id !== undefined && (rule.project_id === null || rule.project_id === project_id)
          if (!is_its) consider(rule, row.subject_id, { ...row, is_bad: false }, row)
        }
      }
      write(moves)
    },
  }
}
export type Watch = ReturnType<typeof createWatch>
