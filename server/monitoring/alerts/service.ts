import { setImmediate } from 'node:timers/promises'
import { type Actor, authorize, isAdministrator, PLATFORM, visibleProjects } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import { conflict, forbidden, invalid, notFound } from '#server/kernel/errors'
import { newId } from '#server/kernel/ids'
import { limits, paged, pageOf, type Paging } from '#server/kernel/schemas'
import { mapInPieces } from '#server/kernel/pace'
import { isWanted, type Wanted } from '#server/kernel/page'
import { BUILTIN, WATCHED_EVENTS } from './builtin.ts'
import { unmeasured } from './metric.ts'
import { createAlertRepository, type RuleRow } from './repository.ts'
import type { AlertRule, AlertRuleChange, NewAlertRule } from './schema.ts'
import { createWatch, type WatchOptions, type WatchPorts } from './watch.ts'

export type AlertPorts = WatchPorts
export interface AlertOptions extends Omit<WatchOptions, 'alerts' | 'ports'> {
  audit: AuditTrail
  ports: AlertPorts
}

const MOST_IN_PROJECT = 100
/** Alerts of one project that begin or end within one evaluation. */
const MOST_MOVED = 200
const STATES = ['ok', 'resolved', 'pending', 'firing'] as const

/** Rules that watch, and what they found. */
export function createAlerts(options: AlertOptions) {
  const { db, clock, audit, events, ports } = options
  const alerts = createAlertRepository(db)
  const watch = createWatch({ ...options, alerts })
  let unsubscribe: (() => void) | undefined
  let soon: NodeJS.Immediate | undefined

  const get = (id: string): RuleRow => {
    const row = alerts.rule(id)
    if (!row) throw notFound('alert rule')
    return row
  }
  const isVisible = (visible: readonly string[] | undefined, project_id: string | null) =>
    visible === undefined || (project_id !== null && visible.includes(project_id))

  /** Those of a rule of the installation may be anybody's. */
  const channelsFor = (actor: Actor, row: RuleRow): string[] =>
    (JSON.parse(row.channels) as string[]).filter((id) => {
      if (row.project_id !== null || isAdministrator(actor)) return true
      const found = ports.channel(id)
      return found && !found.all_projects && isVisible(visibleProjects(actor), found.project_id)
    })

  const isSilenced = ({ silenced_until }: RuleRow): boolean =>
    silenced_until !== null && Date.parse(silenced_until) > clock.now()
  /** How a rule fares whose worst alert is this bad. */
  const stateOf = (row: RuleRow, rank: number): AlertRule['state'] => {
    const worst = STATES[rank]!
    return isSilenced(row) && (worst === 'ok' || worst === 'firing') ? 'silenced' : worst
  }
  const view = (row: RuleRow, actor: Actor): AlertRule => {
    const shown = alerts.shown(row.id, visibleProjects(actor))
    const subjects = shown.map(({ subject_id, state, since, value, message }) => ({
      subject_id,
      state: state === 'firing' && isSilenced(row) ? ('silenced' as const) : state,
      since,
      value,
      message,
    }))
    return {
      ...row,
      channels: channelsFor(actor, row),
      enabled: row.enabled === 1,
      state: stateOf(row, shown[0] ? STATES.indexOf(shown[0].state) : 0),
      subjects,
    }
  }
  /** `named` are those that the rule has already. */
  const requireChannels = (
    actor: Actor,
    ids: readonly string[],
    project_id: string | null,
    named: readonly string[] = [],
  ): void => {
    for (const [index, id] of ids.entries()) {
      const found = ports.channel(id)
      const is_usable = !found?.all_projects || isAdministrator(actor) || named.includes(id)
      if (!found || !is_usable || (project_id !== null && found.project_id !== project_id))
        throw invalid(`channels.${index}`, 'is no webhook of this project.')
    }
  }
  /** Throws 422 for what would watch for ever and see nothing. */
  const requireSeen = ({ subject_kind, metric, comparison, threshold }: RuleRow): void => {
    const fault = metric ? unmeasured(subject_kind, metric) : undefined
    if (fault !== undefined) throw invalid('metric', fault)
    if (metric === 'instances' && comparison === 'below' && threshold! <= 1)
      throw invalid(
        'threshold',
        'must be more than 1: what has no instance is not sampled. That nothing of an app serves is told by the built-in rule "App crashed".',
      )
  }
  /** Throws 409 when a project may not have so many more, or those that it has once some came with a move. */
  const requireRoom = (project_id: string, adding: number): void => {
    if (alerts.countOf(project_id) + adding > MOST_IN_PROJECT)
      throw conflict(`A project may have ${MOST_IN_PROJECT} alert rules at most.`)
  }
  const record = (actor: Actor, what: string, row: RuleRow, before: RuleRow | null = null) => {
    const audited = ({ name, metric, comparison, threshold, for_s, enabled, silenced_until }: RuleRow) => ({
      name,
      metric,
      comparison,
      threshold,
      for_s,
      enabled: enabled === 1,
      silenced_until,
    })
    events.append({
      type: `alert_rule.${what}`,
      project_id: row.project_id,
      actor_id: actor.user_id || null,
      payload: { alert_rule_id: row.id, name: row.name },
    })
    audit.record(actor, {
      action: `alert_rule.${what}`,
      resource_type: 'alert_rule',
      resource_id: row.id,
      project_id: row.project_id,
      before: before && audited(before),
      after: what === 'delete' ? null : audited(row),
    })
  }
  /** What belongs to the whole installation is an administrator's to change, the rest its project's. */
  const requireOwn = (actor: Actor, row: RuleRow): void => {
    if (row.project_id !== null)
      return authorize(actor, 'developer', { project_id: row.project_id, noun: 'alert rule' })
    if (visibleProjects(actor) !== undefined)
      throw forbidden('Only an administrator may change a rule of the installation.')
  }

  const ensureBuiltin = (): void =>
    db.tx(() => {
      const known = new Set(alerts.rules().map(({ builtin }) => builtin))
      const at = clock.iso()
      for (const { key, name, severity, subject_kind, metric } of BUILTIN) {
        if (known.has(key)) continue
        alerts.insertRule({
          id: newId('alr'),
          project_id: null,
          builtin: key,
          name,
          subject_kind,
          subject_id: null,
          metric: metric?.name ?? null,
          comparison: metric?.comparison ?? null,
          threshold: metric?.threshold ?? null,
          for_s: metric?.for_s ?? 0,
          severity,
          channels: '[]',
          enabled: 1,
          silenced_until: null,
          created_by: null,
          created_at: at,
          updated_at: at,
        })
      }
    })

  /** What a rule raised is over with it: nobody would ever end it in the history and on the status page. */
  const removeRule = (actor: Actor, row: RuleRow): void => {
    alerts.resolveAll(row.id, clock.iso())
    alerts.deleteRule(row.id)
    record(actor, 'delete', row)
  }
  /** What began in a silence and goes on after it is told then: a person who was not woken is still to know. */
  const endSilences = (): void => {
    for (const row of alerts.silencedUntil(clock.iso()))
      db.tx(() => {
        alerts.endSilence(row.id)
        if (row.enabled === 1) watch.tellFiring({ ...row, silenced_until: null })
      })
  }

  /** Rules that watch what is gone go with it. */
  const removed = (subject_id: string): void =>
    db.tx(() => {
      for (const row of alerts.rulesOf(subject_id)) {
        removeRule(PLATFORM, row)
      }
    })

  /** Each project for itself, with others served in between: a hundred rules each may watch thousands of apps. */
  const evaluate = async (): Promise<void> => {
    endSilences()
    const by_project = Map.groupBy(ports.subjects(), ({ project_id }) => project_id)
    const of_installation = Map.groupBy(alerts.rulesIn(null), ({ metric }) => metric !== null)
    await watch.evaluateSignals(of_installation.get(false) ?? [])
    await watch.evaluate(of_installation.get(true) ?? [], [...by_project.values()].flat(), MOST_MOVED)
    for (const project_id of alerts.projects()) {
      await setImmediate()
      await watch.evaluate(alerts.rulesIn(project_id), by_project.get(project_id) ?? [], MOST_MOVED)
    }
  }
  /** Events of one moment are one evaluation, so that a hundred crashes are one message. */
  const evaluateSoon = (): void => {
    soon ??= globalThis.setImmediate(() => {
      soon = undefined
      watch.evaluateHeard(alerts.rulesIn(null))
    })
  }

  return {
    evaluate,
    start(): void {
      ensureBuiltin()
      for (const { subject_kind, subject_id } of alerts.rules())
        if (subject_kind === 'database' && subject_id !== null && !ports.projectOf('database', subject_id))
          removed(subject_id)
      unsubscribe = events.subscribe((event) => {
        // A database tells of its end by an event alone.
        if (event.type === 'database.deleted') removed(String(event.payload.database_id))
        if (!WATCHED_EVENTS.has(event.type)) return
        if (watch.hear(event, alerts.rulesIn(null))) evaluateSoon()
      })
    },
    stop(): void {
      unsubscribe?.()
      if (soon) clearImmediate(soon)
    },
    projectOf: (id: string): string | undefined => alerts.rule(id)?.project_id ?? undefined,
    /** Rules of the caller's projects and of the installation, built-in ones first. */
    async list(actor: Actor, filter: { project_id?: Wanted; state?: Wanted }, paging: Paging) {
      const visible = visibleProjects(actor)
      const ranks = new Map(alerts.worst(visible).map(({ rule_id, rank }) => [rule_id, rank]))
      const rows = alerts
        .rules()
        .filter((row) => row.project_id === null || isVisible(visible, row.project_id))
        .filter((row) => isWanted(filter.project_id, row.project_id))
        .map((row) => ({ ...row, state: stateOf(row, ranks.get(row.id) ?? 0) }))
        .filter(({ state }) => isWanted(filter.state, state))
      const page = pageOf(rows, paging)
      return { ...page, data: await mapInPieces(actor.user_id, page.data, (row) => view(row, actor)) }
    },
    add: (actor: Actor, project_id: string, body: NewAlertRule): AlertRule =>
      db.tx(() => {
        if (body.subject_kind === 'server' && visibleProjects(actor) !== undefined)
          throw forbidden('Only an administrator may watch the server.')
        if (
          body.subject_id !== undefined &&
          (body.subject_kind === 'server' ||
            ports.projectOf(body.subject_kind, body.subject_id) !== project_id)
        )
          throw notFound(body.subject_kind)
        requireChannels(actor, body.channels, project_id)
        requireRoom(project_id, 1)
        const at = clock.iso()
        const row: RuleRow = {
          id: newId('alr'),
          project_id: body.subject_kind === 'server' ? null : project_id,
          builtin: null,
          name: body.name,
          subject_kind: body.subject_kind,
          subject_id: body.subject_id ?? null,
          metric: body.metric,
          comparison: body.comparison,
          threshold: body.threshold,
          for_s: body.for_s,
          severity: body.severity,
          channels: JSON.stringify(body.channels),
          enabled: Number(body.enabled),
          silenced_until: null,
          created_by: actor.user_id || null,
          created_at: at,
          updated_at: at,
        }
        requireSeen(row)
        alerts.insertRule(row)
        record(actor, 'create', row)
        return view(row, actor)
      }),
    change: (actor: Actor, id: string, body: AlertRuleChange): AlertRule =>
      db.tx(() => {
        const before = get(id)
        requireOwn(actor, before)
        if (before.metric === null && (body.metric || body.comparison || body.threshold !== undefined))
          throw conflict('This rule watches events; it has no metric or threshold.')
        if (body.channels)
          requireChannels(actor, body.channels, before.project_id, JSON.parse(before.channels) as string[])
        const { channels, enabled, silenced_until, ...rest } = body
        const row: RuleRow = {
          ...before,
          ...rest,
          silenced_until: silenced_until === undefined ? before.silenced_until : silenced_until,
          channels: channels ? JSON.stringify(channels) : before.channels,
          enabled: enabled === undefined ? before.enabled : Number(enabled),
          updated_at: clock.iso(),
        }
        if (body.metric || body.comparison || body.threshold !== undefined) requireSeen(row)
        alerts.updateRule(row)
        if (row.enabled === 0) {
          alerts.resolveAll(id, clock.iso())
          alerts.clearStates(id)
        } else if (isSilenced(before) && !isSilenced(row)) watch.tellFiring(row)
        record(actor, 'update', row, before)
        return view(row, actor)
      }),
    remove: (actor: Actor, id: string): void =>
      db.tx(() => {
        const row = get(id)
        requireOwn(actor, row)
        if (row.builtin)
          throw conflict('A built-in rule cannot be deleted. Turn it off with `enabled: false`.')
        removeRule(actor, row)
      }),
    history(actor: Actor, paging: Paging) {
      return paged(alerts.history(visibleProjects(actor), ...limits(paging)), paging)
    },
    /** What fires now, of what the caller can see. */
    firing: (actor: Actor) => alerts.firing(visibleProjects(actor)),
    countFiring: (actor: Actor): number => alerts.countFiring(visibleProjects(actor)),
    /**
     * Alerts of a subject and the rules that watch it alone go where it went; channels stay with their project.
     * Throws 409 where the rules are too many.
     * @param parts of the subject, with alerts of their own.
     */
    moved(subject_id: string, project_id: string, parts: readonly string[]): void {
      for (const id of [subject_id, ...parts]) alerts.relocate(id, project_id)
      const rules = alerts.rulesOf(subject_id)
      for (const { id, channels } of rules) {
        const kept = (JSON.parse(channels) as string[]).filter(
          (channel) => ports.channel(channel)?.project_id === project_id,
        )
        alerts.moveRule({ id, project_id, channels: JSON.stringify(kept), updated_at: clock.iso() })
      }
      if (rules.length > 0) requireRoom(project_id, 0)
    },
    removed,
    /** Rules of a project go with it. Part of its deletion, when nothing is left in it that they could watch. */
    projectRemoved(actor: Actor, project_id: string): void {
      for (const row of alerts.rulesIn(project_id)) {
        removeRule(actor, row)
      }
    },
    prune: (before: string): number => alerts.prune(before),
  }
}
export type Alerts = ReturnType<typeof createAlerts>
