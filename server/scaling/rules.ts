import type { Actor } from '#server/kernel/access'
import { conflict, notFound } from '#server/kernel/errors'
import type { RuleRequest } from './schema.ts'
import type { ScalingContext } from './context.ts'

/** Sets and removes the rule of an app. */
export function ruleChanges(context: ScalingContext) {
  const { db, repository, ports, audit } = context
  const record = (actor: Actor, app_id: string, action: string, before: unknown, after: unknown) => {
    const app = context.app(app_id)
    audit.record(actor, {
      action,
      resource_type: 'app',
      resource_id: app_id,
      project_id: app.project_id,
      ...(before ? { before: { rule: before } } : {}),
      ...(after ? { after: { rule: after } } : {}),
    })
    ports.note(app.id, 'app.scaling_changed', { rule: after ?? null }, actor)
  }
  return {
    /** From now on the rule says how many instances there are, beginning with as many as there are now. */
    setRule(actor: Actor, app_id: string, rule: RuleRequest): void {
      ports.requireEngine()
      db.tx(() => {
        const app = context.app(app_id)
        if (app.status === 'deleting') throw conflict('Cannot scale an app while it is being deleted.')
        if (context.liveSize(app)?.has_web === false)
          throw conflict('The app has no web process, and rules scale web only.')
        ports.requireReplicas(app_id, rule.max)
        const before = repository.find(app_id).rule
        const now = context.countOf(app)
        const decided = Math.min(rule.max, Math.max(1, rule.min, now))
        ports.resize(app_id, {}, () => repository.change(app_id, { rule, decided, up_basis: null }))
        record(actor, app_id, 'app.scaling_rule.set', before, rule)
        db.afterCommit(() => context.apply(app_id))
      })
    },
    /** The instances that there are stay. */
    removeRule(actor: Actor, app_id: string): void {
      ports.requireEngine()
      db.tx(() => {
        const app = context.app(app_id)
        const { rule } = repository.find(app_id)
        if (!rule) throw notFound('scaling rule')
        const replicas = context.countOf(app)
        ports.resize(app_id, { replicas }, () => {
          for (const id of ports.currentReleases(app.id)) {
            const known = repository.scaleOf(id) ?? { limits: {}, processes: {} }
            repository.setScale(id, app_id, { ...known, replicas })
          }
          repository.change(app_id, { rule: null, decided: null, up_basis: null, up_at: null, down_at: null })
        })
        record(actor, app_id, 'app.scaling_rule.remove', rule, undefined)
        db.afterCommit(() => context.apply(app_id))
      })
    },
  }
}
