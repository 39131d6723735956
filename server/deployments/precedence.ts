import { conflict } from '#server/kernel/errors'
import type { DeploymentRepository, DeploymentRow } from './repository.ts'
import type { Trigger } from './schema.ts'

/** What nobody asked for at this moment, and what would bring back the release that a rollback leaves. */
const YIELDS: ReadonlySet<Trigger> = new Set(['push', 'hook', 'scale', 'config', 'api', 'restart'])

/**
 * Which deployment gives way to which: a newer one replaces what is queued, but only a person's own decision
 * replaces a rollback, and a restart, which brings no version of its own, replaces other restarts only.
 */
export const createPrecedence = (repository: DeploymentRepository) => ({
  /**
   * Throws 409 while a rollback that has no traffic yet would be dropped, or be undone right after. Call it
   * in the transaction that queues the deployment.
   */
  require(app_id: string, trigger: Trigger): void {
    if (
      !YIELDS.has(trigger) ||
      !repository.unfinished(app_id).some((row) => row.trigger === 'rollback' && row.status !== 'live')
    )
      return
    throw conflict('The app is being rolled back. Wait until the rollback is live, or cancel it first.')
  },
  /** Queued deployments that a new one takes the place of. */
  replacedBy: (app_id: string, trigger: Trigger): DeploymentRow[] =>
    repository
      .withStatus(app_id, ['queued'])
      .filter((row) => trigger !== 'restart' || row.trigger === 'restart'),
})
