import { type Actor, PLATFORM, visibleProjects } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict, invalid, notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import { forgetAll } from '#server/kernel/forget'
import { newId } from '#server/kernel/ids'
import type { Log } from '#server/kernel/log'
import { limits, paged, type Paging } from '#server/kernel/schemas'
import type { Wanted } from '#server/kernel/page'
import { OutboundError, type OutboundPolicy } from '#server/platform/outbound/outbound'
import { startOf } from '../metrics/interval.ts'
import { createLine, READ_AT_ONCE } from './line.ts'
import { type ProbeTools, probe, splitTarget } from './probe.ts'
import { type CheckRow, createUptimeRepository, RESULT_STEPS, type ResultRow } from './repository.ts'
import {
  LONGEST_INTERVAL_S,
  type NewUptimeCheck,
  type UptimeCheck,
  type UptimeCheckChange,
} from './schema.ts'

export interface UptimeOptions {
  db: Db
  clock: Clock
  log: Log
  events: Events
  audit: AuditTrail
  policy: OutboundPolicy
  tools: Pick<ProbeTools, 'client' | 'dial'>
  ports: {
    appProject(id: string): string | undefined
    /** Path of the public page of a project. */
    statusPage(project_id: string): string
  }
}

const MOST_IN_PROJECT = 100
const DAY_S = 86_400
/** Until looks go on that came too quickly. */
const PAUSE_MS = 200

const share = ({ checks, failures }: Pick<ResultRow, 'checks' | 'failures'>): number | null =>
  checks === 0 ? null : Math.round(((checks - failures) / checks) * 1_000_000) / 10_000

/** Checks from outside whether something answers, with history and availability. */
export function createUptime({ db, clock, log, events, audit, policy, tools, ports }: UptimeOptions) {
  const checks = createUptimeRepository(db)
  const under_way = new Map<string, Promise<void>>()
  const line = createLine(clock)
  const ending = new AbortController()
  const probing: ProbeTools = {
    ...tools,
    signal: ending.signal,
    now: clock.now,
    monotonic_ms: clock.monotonic_ms,
  }
  let paced: NodeJS.Timeout | undefined
  const now_s = () => Math.floor(clock.now() / 1000)

  const get = (id: string): CheckRow => {
    const row = checks.find(id)
    if (!row) throw notFound('uptime check')
    return row
  }
  const view = (row: CheckRow): UptimeCheck => {
    const over = (days: number) => checks.totals(row.id, startOf(now_s(), DAY_S) - (days - 1) * DAY_S)
    const month = over(30)
    return {
      ...row,
      enabled: row.enabled === 1,
      public: row.public === 1,
      status_page: row.public === 1 ? ports.statusPage(row.project_id) : null,
      status: row.enabled === 1 ? row.status : 'paused',
      availability_24h_percent: share(over(1)),
      availability_7d_percent: share(over(7)),
      availability_30d_percent: share(month),
      latency_average_ms: month.checks === 0 ? null : Math.round(month.latency_sum_ms / month.checks),
    }
  }
  const requireTarget = ({ kind, target }: Pick<CheckRow, 'kind' | 'target'>): void => {
    const split = kind === 'http' ? undefined : splitTarget(target)
    if (kind !== 'http' && !split) throw invalid('target', 'must be host:port, such as db.example.com:5432.')
    try {
      if (split) policy.checkHost(split.host, split.port)
      else policy.checkUrl(target, { protocols: ['https:', 'http:'] })
    } catch (error) {
      if (error instanceof OutboundError) throw invalid('target', error.message)
      throw error
    }
  }
  const audited = ({ name, kind, target, interval_s, enabled, public: is_public }: CheckRow) => ({
    name,
    kind,
    target,
    interval_s,
    enabled: enabled === 1,
    public: is_public === 1,
  })
  const record = (actor: Actor, what: string, before: CheckRow | null, after: CheckRow | null) => {
    const { id, project_id, app_id, name } = (after ?? before)!
    events.append({
      type: `uptime_check.${what}`,
      project_id,
      app_id,
      actor_id: actor.user_id || null,
      payload: { uptime_check_id: id, name },
    })
    audit.record(actor, {
      action: `uptime_check.${what}`,
      resource_type: 'uptime_check',
      resource_id: id,
      project_id,
      before: before && audited(before),
      after: after && audited(after),
    })
  }
  const emit = (row: CheckRow, type: string, payload: Record<string, unknown> = {}) =>
    events.append({
      type,
      project_id: row.project_id,
      app_id: row.app_id,
      payload: { uptime_check_id: row.id, name: row.name, ...payload },
    })

  /** Writes one result; tells when the state changed. */
  const note = (id: string, error: string | null, latency_ms: number): void =>
    db.tx(() => {
      const row = checks.find(id)
      if (!row) return
      for (const { step_s } of RESULT_STEPS)
        checks.count(id, step_s, startOf(now_s(), step_s), error, latency_ms)
      const failures = error === null ? 0 : row.failures + 1
      const failing = failures >= row.failures_needed ? 'down' : row.status
      const status = error === null ? 'up' : failing
      const has_changed = status !== row.status
      checks.update({
        ...row,
        failures,
        status,
        last_error: error,
        last_latency_ms: latency_ms,
        checked_at: clock.iso(),
        changed_at: has_changed ? clock.iso() : row.changed_at,
        next_at: new Date(clock.now() + row.interval_s * 1000).toISOString(),
      })
      if (has_changed && status === 'down') emit(row, 'uptime.down', { error })
      if (has_changed && status === 'up' && row.status === 'down') emit(row, 'uptime.up')
    })

  /** Throws 409 when a project may not have so many more, or those that it has once some came with a move. */
  const requireRoom = (project_id: string, adding: number): void => {
    if (checks.countOf(project_id) + adding > MOST_IN_PROJECT)
      throw conflict(`A project may have ${MOST_IN_PROJECT} uptime checks at most.`)
  }
  const remove = (actor: Actor, row: CheckRow): void => {
    checks.delete(row.id)
    if (row.status === 'down') emit(row, 'uptime.deleted')
    record(actor, 'delete', row, null)
  }

  /** A time that lies further ahead was written down by a clock that was wrong. */
  const ahead = () => new Date(clock.now() + 2 * LONGEST_INTERVAL_S * 1000).toISOString()

  /**
   * Looks, unless somebody has changed or removed the check since it was read, or it was under way then and has
   * ended by now. True when it may go on.
   */
  const lookAt = async (id: string): Promise<boolean> => {
    try {
      const row = checks.find(id)
      if (!row || row.enabled === 0 || (row.next_at > clock.iso() && row.next_at <= ahead())) return true
      const { error, latency_ms } = await probe(row, probing)
      if (ending.signal.aborted) return false
      note(id, error, latency_ms)
      return true
    } catch (error) {
      // It is due still, and would be begun again and again.
      log.error('An uptime check broke', { check: id, error })
      return false
    }
  }
  const begin = (): void => {
    for (let turn = line.take(); turn; turn = line.take()) {
      const { id, leave } = turn
      // It was begun before it was read again.
      if (under_way.has(id)) {
        leave()
        continue
      }
      const looking = lookAt(id).then((goes_on) => {
        under_way.delete(id)
        leave()
        if (!goes_on || ending.signal.aborted) return
        if (line.isToBeRead()) wake()
        else begin()
      })
      under_way.set(id, looking)
    }
    if (!line.isPaced()) return
    clearTimeout(paced)
    paced = setTimeout(begin, PAUSE_MS).unref()
  }
  const wake = (): void => {
    line.fill(checks.due(clock.iso(), ahead(), READ_AT_ONCE))
    begin()
  }

  return {
    projectOf: (id: string) => checks.find(id)?.project_id,
    appOf: (id: string): string | undefined => checks.find(id)?.app_id ?? undefined,
    idsOf: (app_id: string): string[] => checks.ofApp(app_id).map(({ id }) => id),
    /** Checks of an app go where it went, and are gone when it is. Throws 409 where they are too many. */
    moved(app_id: string, project_id: string): void {
      if (checks.move(app_id, project_id, clock.iso())) requireRoom(project_id, 0)
    },
    removed: (app_id: string) => checks.ofApp(app_id).forEach((row) => remove(PLATFORM, row)),
    list(actor: Actor, filter: { project_id?: Wanted; app_id?: Wanted }, paging: Paging) {
      const { rows, total } = checks.page(visibleProjects(actor), filter, ...limits(paging))
      return paged({ rows: rows.map(view), total }, paging)
    },
    /** One check with its results, in five minutes for a week and days before. */
    get(id: string, days: number) {
      const row = get(id)
      const step_s = days <= 7 ? 300 : DAY_S
      const from = startOf(now_s() - days * DAY_S, step_s)
      return {
        ...view(row),
        results: checks.results(id, step_s, from, now_s() + 1).map((result) => ({
          at: new Date(result.at * 1000).toISOString(),
          checks: result.checks,
          failures: result.failures,
          latency_average_ms: Math.round(result.latency_sum_ms / result.checks),
          latency_peak_ms: result.latency_peak_ms,
          last_error: result.last_error,
        })),
      }
    },
    add: (actor: Actor, project_id: string, body: NewUptimeCheck): UptimeCheck =>
      db.tx(() => {
        if (body.app_id !== undefined && ports.appProject(body.app_id) !== project_id) throw notFound('app')
        requireTarget(body)
        requireRoom(project_id, 1)
        const at = clock.iso()
        const row: CheckRow = {
          id: newId('upt'),
          project_id,
          app_id: body.app_id ?? null,
          name: body.name,
          kind: body.kind,
          target: body.target,
          interval_s: body.interval_s,
          timeout_s: body.timeout_s,
          expected_status: body.expected_status ?? null,
          expected_text: body.expected_text ?? null,
          days_left: body.days_left ?? null,
          failures_needed: body.failures_needed,
          enabled: Number(body.enabled),
          public: Number(body.public),
          status: 'unknown',
          failures: 0,
          last_error: null,
          last_latency_ms: null,
          checked_at: null,
          changed_at: null,
          next_at: at,
          created_at: at,
          updated_at: at,
        }
        checks.insert(row)
        record(actor, 'create', null, row)
        return view(row)
      }),
    change: (actor: Actor, id: string, body: UptimeCheckChange): UptimeCheck =>
      db.tx(() => {
        const before = get(id)
        const { enabled, public: is_public, ...rest } = body
        const is_paused = enabled === false && before.enabled === 1
        const row: CheckRow = {
          ...before,
          ...rest,
          // How it was says nothing of how it will be once it goes on.
          ...(is_paused ? { status: 'unknown' as const, failures: 0, changed_at: clock.iso() } : {}),
          enabled: enabled === undefined ? before.enabled : Number(enabled),
          public: is_public === undefined ? before.public : Number(is_public),
          next_at: clock.iso(),
          updated_at: clock.iso(),
        }
        requireTarget(row)
        checks.update(row)
        if (is_paused && before.status === 'down') emit(row, 'uptime.paused')
        record(actor, 'update', before, row)
        return view(row)
      }),
    remove: (actor: Actor, id: string): void => db.tx(() => remove(actor, get(id))),
    /** Checks that a project shows on its status page, with each of the last 90 days. */
    shown: (project_id: string) =>
      checks.shown(project_id).map((row) => ({
        ...view(row),
        days: checks
          .results(row.id, DAY_S, startOf(now_s(), DAY_S) - 89 * DAY_S, now_s() + 1)
          .map((day) => ({ at_s: day.at, availability_percent: share(day) })),
      })),
    /** Begins the checks that are due, and the next ones as these end. */
    wake,
    /** Ends the checks that are under way, of which nothing is noted: a stop waits for no target. */
    end(): void {
      ending.abort()
      clearTimeout(paced)
    },
    /** Resolves once no check is under way. For tests and the end of the process. */
    async idle(): Promise<void> {
      while (under_way.size > 0) await Promise.allSettled(under_way.values())
    },
    async prune(): Promise<number> {
      let count = 0
      for (const id of checks.ids()) {
        for (const { step_s, kept_s } of RESULT_STEPS)
          count += (await forgetAll(() => checks.prune(id, step_s, now_s() - kept_s))) ?? 0
      }
      return count
    },
  }
}
export type Uptime = ReturnType<typeof createUptime>
