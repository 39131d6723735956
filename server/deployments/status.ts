import type { Db } from '#server/kernel/db'
import { notFound } from '#server/kernel/errors'
import type { Events } from '#server/kernel/events'
import type { Failure } from '#server/kernel/jobs/definition'
import { orThrow } from '#server/kernel/or-throw'
import { deploymentMachine } from './machine.ts'
import type { DeploymentRow } from './repository.ts'
import type { DeployContext } from './work.ts'

/** Reads deployments, moves their status, and tells subscribers. */
export function createStatus(
  {
    apps,
    ports,
    deployments: repository,
    clock,
  }: Pick<DeployContext, 'apps' | 'ports' | 'deployments' | 'clock'>,
  db: Db,
  events: Events,
) {
  const get = (id: string): DeploymentRow => orThrow(repository.find(id), () => notFound('deployment'))
  const emit = (row: DeploymentRow, type: string, payload: Record<string, unknown> = {}) =>
    events.append({
      type,
      project_id: row.project_id,
      app_id: row.app_id,
      deployment_id: row.id,
      actor_id: row.created_by,
      payload: {
        deployment_id: row.id,
        app_id: row.app_id,
        number: row.number,
        status: row.status,
        trigger: row.trigger,
        ...payload,
      },
    })
  /** The deployment of what serves of an app. */
  const serving = (app_id: string): DeploymentRow | undefined => {
    const { live_deployment_id } = apps.get(app_id)
    return live_deployment_id ? repository.find(live_deployment_id) : undefined
  }
  /** Makes a deployment the one that serves; what served before is replaced by it. */
  const goLive = ({ id, app_id, trigger }: DeploymentRow): void => {
    const before = serving(app_id)
    if (before && before.id !== id && before.status === 'live') advance(before.id, 'replace')
    apps.setLive(app_id, id, repository.find(id)!.release_id)
    ports.wentLive(app_id)
    apps.transition(app_id, 'go_live', { deployment_id: id })
    // Not when it is queued: one that is replaced or fails before it has traffic leaves the app as it was.
    if (trigger === 'rollback') apps.setAutoDeploy(app_id, false)
  }
  const advance: DeployContext['advance'] = (id, event, change = {}) =>
    db.tx(() => {
      const row = get(id)
      const next = deploymentMachine.next(row.status, event)
      const started = row.status === 'queued' ? { started_at: row.started_at ?? clock.iso() } : {}
      if (next !== row.status) repository.setStatus(id, row.status, next)
      if (Object.keys({ ...started, ...change }).length > 0) repository.change(id, { ...started, ...change })
      if (event === 'go_live') goLive(row)
      const failure = change.failure ? (JSON.parse(change.failure) as Failure) : undefined
      const type = event === 'restore' ? 'deployment.restored' : `deployment.${next}`
      if (next !== row.status) emit(get(id), type, failure ? { error: failure.message } : {})
    })
  return { get, emit, serving, advance }
}
export type Status = ReturnType<typeof createStatus>
