import type { AppStatus } from '#server/apps/schema'
import type { Failure } from '#server/kernel/jobs/definition'
import { fullerOf } from './commits.ts'
import { expiryOf, type PreviewContext } from './context.ts'
import type { PreviewEvent } from './machine.ts'
import type { PreviewRow } from './repository.ts'

/** What the status of the app that runs a preview means for it. */
const EVENTS: Partial<Record<AppStatus, PreviewEvent>> = {
  building: 'deploy',
  running: 'serve',
  crashed: 'fail',
  failed: 'fail',
  stopped: 'stop',
}
/** Events of the app that runs a preview after which there may be something to tell. */
const FOLLOWED =
  /^(deployment\.(queued|live|finished|failed|cancelled)|app\.(running|stopped|crashed|failed))$/
/** How a deployment ended that did not go live. */
const UNDONE = new Set(['failed', 'cancelled'])

/**
 * Brings previews to what became of the apps that run them. What was told is kept in the row, so
 * that nothing is told twice and a start tells what the last process did not get to.
 */
export function createFollowing(context: PreviewContext) {
  const { db, clock, events, repository, settings, ports, change, advance, note } = context
  const settle = (row: PreviewRow): void => {
    const app = row.runner_id ? ports.app(row.runner_id) : undefined
    const latest = row.runner_id ? ports.latestDeployment(row.runner_id) : undefined
    const event = app && EVENTS[app.status]
    if (!app || !latest || !event) return
    const outcome = latest.finished_at === null ? 'under_way' : latest.status
    const told = `${latest.id} ${app.status} ${outcome}`
    if (told === row.told) return
    const failure = latest.failure ? (JSON.parse(latest.failure) as Failure).message : null
    const is_undone = UNDONE.has(outcome)
    const last_error = app.last_error ?? (is_undone ? (failure ?? `The deployment was ${outcome}.`) : null)
    change(row.id, {
      told,
      last_error,
      commit_sha: fullerOf(row.commit_sha, latest.commit_sha),
      ...(outcome === 'live' ? { expires_at: expiryOf(settings.rowOf(row.app_id).ttl_seconds, clock) } : {}),
    })
    const next = advance(row.id, event)
    const facts = { deployment_id: latest.id, error: last_error }
    if (is_undone || next.status === 'failed') note(next, 'preview.failed', facts)
    else if (next.status === 'stopped') note(next, 'preview.stopped', facts)
    else if (next.status === 'running' && outcome === 'live')
      note(next, 'preview.running', { ...facts, url: ports.address(app.id).url })
  }
  let unsubscribe: (() => void) | undefined
  return {
    /** Tells what the last process did not get to, and follows every app that runs a preview. */
    start(): void {
      db.tx(() => repository.running().forEach(settle))
      unsubscribe = events.subscribe(({ type, app_id }) => {
        if (!app_id || !FOLLOWED.test(type)) return
        db.tx(() => {
          const row = repository.byRunner(app_id)
          if (row && row.status !== 'removing') settle(row)
        })
      })
    },
    stop: (): void => unsubscribe?.(),
  }
}
