import { type Actor, PLATFORM } from '#server/kernel/access'
import { type Mark, markNow, sinceMark } from '#server/kernel/stopwatch'
import type { ScaledApp, ScalingContext } from './context.ts'
import { sleepMachine, type SleepEvent } from './machine.ts'
import type { NewDecision } from './repository.ts'

/** So long after a start that failed nobody is kept waiting for the next one. */
const FAILED_MS = 5_000
const HEARD_MS = 60_000

/** Apps that have no instance while nobody asks for them, and are woken by whoever does. */
export function createSleep(context: ScalingContext) {
  const { db, clock, log, repository, ports, audit } = context
  const started = markNow(clock)
  const last_request_ms = new Map<string, number>()
  const failed_ms = new Map<string, number>()
  /** When requests began to wait, for the event. */
  const waiting_since = new Map<string, Mark>()

  const move = (app_id: string, event: SleepEvent): void => {
    const { state } = repository.find(app_id)
    const next = sleepMachine.next(state, event)
    if (next !== state) repository.change(app_id, { state: next, state_since: clock.iso() })
  }
  const record = (app: ScaledApp, decision: Omit<NewDecision, 'app_id' | 'at' | 'outcome' | 'target'>) =>
    repository.record({ target: null, ...decision, app_id: app.id, at: clock.iso(), outcome: 'applied' })

  /** Ends the instances once nobody uses them, and has requests wait from now on. */
  const fallAsleep = (app: ScaledApp, actor: Actor, why: 'idle' | 'manual', detail: string): void => {
    const from = context.countOf(app)
    move(app.id, 'sleep')
    record(app, {
      reason: why,
      metric: why === 'idle' ? 'requests' : null,
      value: why === 'idle' ? 0 : null,
      from,
      to: 0,
      detail,
    })
    ports.note(app.id, 'app.asleep', { reason: why, from, to: 0, detail }, actor)
    if (why === 'idle')
      audit.record(PLATFORM, {
        action: 'app.sleep',
        resource_type: 'app',
        resource_id: app.id,
        project_id: app.project_id,
        after: { replicas: 0, detail },
      })
    db.afterCommit(() => context.apply(app.id))
  }

  /** Starts what is to serve; until it does, requests wait. */
  const goOn = (app_id: string): void => {
    ports.settle(app_id).then(
      () => {
        // A deployment is about to bring instances of its own, or this is tried again after it.
        if (ports.servingCount(app_id) === 0 && ports.isHeld(app_id)) return
        ended(app_id, ports.servingCount(app_id) > 0 ? undefined : new Error('No instance of it runs.'))
      },
      (error: unknown) => ended(app_id, error as Error),
    )
  }
  /** What follows once it is known whether a start has worked. */
  const ended = (app_id: string, error?: Error): void => {
    const app = ports.app(app_id)
    const { state } = repository.find(app_id)
    if (!app || state === 'awake' || (state === 'asleep' && app.status === 'running')) return
    if (error) failed_ms.set(app_id, clock.monotonic_ms())
    const since = waiting_since.get(app_id)
    waiting_since.delete(app_id)
    db.tx(() => {
      move(app_id, 'wake')
      if (app.status !== 'running') return
      if (error) ports.note(app.id, 'app.wake_failed', { error: ports.redact(app_id, error.message) })
      else
        ports.note(app.id, 'app.woken', {
          to: context.countOf(app),
          ...(since === undefined ? {} : { waited_ms: sinceMark(clock, since) }),
        })
    })
    if (error) log.warn('An app that slept could not be woken', { app: app_id, error })
    // Requests are not held any more: what keeps apps running goes on from here.
    if (error || app.status !== 'running') ports.refreshRoutes(app_id)
  }

  const wake = (app: ScaledApp, why: 'request' | 'manual', detail: string): void => {
    waiting_since.set(app.id, markNow(clock))
    last_request_ms.set(app.id, clock.now())
    db.tx(() => {
      move(app.id, 'request')
      const to = context.countOf(app)
      record(app, {
        reason: why,
        metric: why === 'request' ? 'requests' : null,
        value: why === 'request' ? 1 : null,
        from: 0,
        to,
        detail,
      })
      db.afterCommit(() => goOn(app.id))
    })
  }

  return {
    goOn,
    wake,
    fallAsleep,
    ended: (app_id: string) => ended(app_id),
    /** The edge's word that somebody asks for an app; answers whether it is worth waiting. */
    onWake(app_id: string): 'held' | 'refused' {
      const app = ports.app(app_id)
      if (app?.status !== 'running') return 'refused'
      last_request_ms.set(app_id, clock.now())
      const failed = failed_ms.get(app_id)
      if (failed !== undefined && clock.monotonic_ms() - failed < FAILED_MS) return 'refused'
      if (repository.find(app_id).state === 'asleep') wake(app, 'request', 'A request asked for the app.')
      return 'held'
    },
    /** Notes which apps had requests lately. */
    hear(): void {
      const now_ms = clock.now()
      for (const { app_id, from_ms, requests } of ports.traffic(now_ms - HEARD_MS)) {
        const known_ms = last_request_ms.get(app_id) ?? 0
        if (requests > 0 && (from_ms > known_ms || known_ms > now_ms)) last_request_ms.set(app_id, from_ms)
      }
    },
    /** Lets an app fall asleep that nobody has asked for long enough. */
    async consider(app: ScaledApp): Promise<void> {
      const { sleep_after_s, rule, state_since } = repository.find(app.id)
      const idle_s = sleep_after_s ?? (rule?.min === 0 ? rule.scale_down_cooldown_s : null)
      if (idle_s === null || ports.servingCount(app.id) === 0) return
      const now_ms = clock.now()
      // What lies ahead was written down by a clock that was wrong.
      const past = [last_request_ms.get(app.id) ?? 0, state_since === null ? 0 : Date.parse(state_since)]
        .map((at_ms) => now_ms - at_ms)
        .filter((ago_ms) => ago_ms >= 0)
      const quiet_s = Math.min(sinceMark(clock, started), ...past) / 1000
      if (quiet_s < idle_s || (await ports.connections(app.id)) > 0 || ports.isHeld(app.id)) return
      const seconds = Math.floor(quiet_s)
      db.tx(() =>
        fallAsleep(app, PLATFORM, 'idle', `No request for ${seconds} seconds; it sleeps after ${idle_s}.`),
      )
    },
    /** A deployment has instances with traffic. In its transaction. */
    wentLive(app_id: string): void {
      const { state, up_basis } = repository.find(app_id)
      if (state !== 'awake') move(app_id, 'wake')
      // Another release may be faster or slower.
      if (up_basis) repository.change(app_id, { up_basis: null })
    },
    again: (app_id: string) => move(app_id, 'sleep'),
  }
}
export type Sleep = ReturnType<typeof createSleep>
