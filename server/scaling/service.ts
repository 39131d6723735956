import { PLATFORM } from '#server/kernel/access'
import { ApiError, notFound } from '#server/kernel/errors'
import { orThrow } from '#server/kernel/or-throw'
import { createPace } from '#server/kernel/pace'
import { createAutoscaler, explain } from './autoscaler.ts'
import { changeScale } from './change.ts'
import type { ScaledApp, ScalingContext, ScalingOptions } from './context.ts'
import type { Scaling } from './contract.ts'
import { basisAfter, type RuleVerdict } from './decide.ts'
import { createScalingRepository, type ScalingRow } from './repository.ts'
import { ruleChanges } from './rules.ts'
import type { AppScaling, Rule } from './schema.ts'
import { createSleep } from './sleep.ts'
import { viewOf } from './view.ts'

const DECISIONS_SHOWN = 50
/** Ends of jobs after which what waited for them is done. */
const JOB_ENDS = /^(deployment\.(finished|failed|cancelled)|app\.(running|failed|crashed))$/

/** Instances of apps: how many, how large, and whether any while nobody asks. */
export function createScaling(options: ScalingOptions) {
  const { db, clock, events, log, ports } = options
  const repository = createScalingRepository(db)
  const autoscaler = createAutoscaler(ports)
  /** Apps whose change waits for the end of a job. */
  const postponed = new Set<string>()

  const context: ScalingContext = {
    ...options,
    repository,
    app: (id) => orThrow(ports.app(id), () => notFound('app')),
    liveSize: ({ live_release_id }) => (live_release_id ? ports.sizeOf(live_release_id) : undefined),
    countOf: (app) =>
      repository.find(app.id).decided ?? context.liveSize(app)?.replicas ?? app.configuration.replicas,
    apply(app_id) {
      if (ports.isHeld(app_id)) return void postponed.add(app_id)
      ports.settle(app_id).then(
        () => finished(app_id),
        (error: unknown) => failed(app_id, error),
      )
    },
  }
  /** What the event says is there by now; whoever shows it asks again. */
  const finished = (app_id: string) => {
    if (ports.app(app_id)) ports.note(app_id, 'app.scaling_finished', { serving: ports.servingCount(app_id) })
  }
  const failed = (app_id: string, error: unknown) => {
    log.warn('An app could not be scaled', { app: app_id, error })
    if (!ports.app(app_id)) return
    ports.note(app_id, 'app.scaling_failed', { error: ports.redact(app_id, (error as Error).message) })
  }
  const sleep = createSleep(context)

  /** Does what a rule asks for, and keeps the numbers. */
  const obey = (row: ScalingRow & { rule: Rule }, app: ScaledApp, from: number, verdict: RuleVerdict) => {
    const { rule } = row
    const { to, value, load } = verdict
    const is_up = to > from
    const at = clock.iso()
    const decision = {
      reason: 'rule' as const,
      metric: rule.metric,
      value: value === null ? null : Math.round(value * 100) / 100,
      target: rule.target,
      from,
      to,
      detail: explain(rule, from, verdict),
    }
    try {
      ports.resize(app.id, {}, () => {
        repository.change(app.id, {
          decided: to,
          ...(is_up ? { up_at: at, up_basis: basisAfter(row.up_basis, { from, load }) } : { down_at: at }),
        })
        repository.record({ ...decision, app_id: app.id, at, outcome: 'applied' })
        ports.note(app.id, 'app.scaled', { ...decision })
        options.audit.record(PLATFORM, {
          action: 'app.scale',
          resource_type: 'app',
          resource_id: app.id,
          project_id: app.project_id,
          before: { replicas: from },
          after: { replicas: to, ...decision },
        })
      })
      context.apply(app.id)
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'CONFLICT') throw error
      const [last] = repository.decisions(app.id, 1)
      if (last?.outcome === 'refused' && last.to === to) return
      repository.record({ ...decision, app_id: app.id, at, outcome: 'refused', detail: error.message })
      ports.note(app.id, 'app.scaling_refused', { ...decision, error: error.message })
    }
  }
  const follow = async (row: ScalingRow & { rule: Rule }, app: ScaledApp): Promise<void> => {
    const current = context.countOf(app)
    const verdict = await autoscaler.ask(row, app, current, clock.now())
    if (verdict.to !== current) db.tx(() => obey(row, app, current, verdict))
  }

  const stopFollowing = events.subscribe(({ type, app_id }) => {
    if (app_id === null) return
    if (type === 'app.stopped') sleep.ended(app_id)
    if (!JOB_ENDS.test(type) || !ports.app(app_id)) return
    if (repository.find(app_id).state === 'waking') return sleep.goOn(app_id)
    if (!postponed.delete(app_id)) return
    context.apply(app_id)
  })

  return {
    ...reading(context),
    wentLive: sleep.wentLive,
    sleepAgain: sleep.again,
    get: (app_id: string): Promise<AppScaling> => {
      const app = context.app(app_id)
      return viewOf(context, app, {
        row: repository.find(app_id),
        count: context.countOf(app),
        decisions: repository.decisions(app_id, DECISIONS_SHOWN),
      })
    },
    change: changeScale(context, sleep),
    ...ruleChanges(context),
    onWake: sleep.onWake,
    /** Looks at every app that has a rule or may fall asleep. Never throws. */
    async tick(): Promise<void> {
      const rows = repository.watched()
      autoscaler.keep(new Set(rows.flatMap(({ app_id, rule }) => (rule ? [app_id] : []))))
      sleep.hear()
      const pace = createPace('scaling')
      for (const row of rows) {
        const rest = pace.rest()
        if (rest) await rest
        const app = ports.app(row.app_id)
        if (app?.status !== 'running' || row.state !== 'awake' || ports.isHeld(row.app_id)) {
          autoscaler.forget(row.app_id)
          continue
        }
        try {
          const { rule } = row
          if (rule) await follow({ ...row, rule }, app)
          await sleep.consider(app)
        } catch (error) {
          log.warn('An app could not be looked at for scaling', { app: row.app_id, error })
        }
      }
    },
    /** Goes on with what a former process was about to wake. */
    start(): void {
      for (const { app_id, state } of repository.watched()) if (state === 'waking') sleep.goOn(app_id)
    },
    stop: stopFollowing,
    prune: repository.prune,
  }
}
export type ScalingService = ReturnType<typeof createScaling>

/** What other domains ask all the time. */
function reading({ repository, ports }: ScalingContext): Omit<Scaling, 'wentLive' | 'sleepAgain'> {
  return {
    scaleOf({ id, app_id }) {
      const { rule, decided, reservations } = repository.find(app_id)
      const scale = repository.scaleOf(id)
      const has_reservations = Object.keys(reservations).length > 0
      if (!scale && !has_reservations && !rule) return undefined
      return {
        ...(scale?.replicas ? { replicas: scale.replicas } : {}),
        ...(rule && decided !== null ? { decided } : {}),
        ...(has_reservations ? { reservations } : {}),
        ...(scale ? { limits: scale.limits, processes: scale.processes } : {}),
      }
    },
    decidedReplicas(app_id) {
      const { rule, decided } = repository.find(app_id)
      return rule ? (decided ?? undefined) : undefined
    },
    isAsleep: (app_id) => repository.find(app_id).state === 'asleep',
    isWaiting: (app_id) =>
      repository.find(app_id).state !== 'awake' && ports.app(app_id)?.status === 'running',
  }
}
