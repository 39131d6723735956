import type { Db } from '#server/kernel/db'
import type { DeploymentRow, DeploymentRepository } from './repository.ts'

/** Images of what is live that are gone from the engine, made again by a restart. */
export function createRemaking({
  db,
  repository,
  restart,
}: {
  db: Db
  repository: Pick<DeploymentRepository, 'withStatus' | 'latest'>
  restart(app_id: string): DeploymentRow
}) {
  /** Queues the restart; nothing when a deployment waits already, which brings an image. */
  const remake = (app_id: string): void => {
    if (repository.withStatus(app_id, ['queued']).length > 0) return
    db.tx(() => restart(app_id))
  }
  return {
    remake,
    /** The same without having been asked; once only, so false when the last deployment was one and failed. */
    remakeOnce(app_id: string): boolean {
      const last = repository.latest(app_id)
      if (last?.trigger === 'restart' && last.created_by === null && last.status === 'failed') return false
      remake(app_id)
      return true
    },
  }
}
