import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import {
  type DeploymentRequest,
  type DeploymentRow,
  type DeploymentRepository,
  requestOf,
} from './repository.ts'

/** A move that failed, e.g. since the app does not start anywhere, is tried again after so long. */
const MOVE_AGAIN_MS = 300_000

/** Restarts that nobody asked for: of what is live its image is gone from the engine, or its server. */
export function createRemaking(
  {
    db,
    clock,
    deployments: repository,
  }: {
    db: Db
    clock: Clock
    deployments: Pick<DeploymentRepository, 'withStatus' | 'latest' | 'unfinished'>
  },
  restart: (app_id: string, ask: DeploymentRequest) => DeploymentRow,
) {
  /** Queues the restart; nothing when a deployment waits already, which brings an image. */
  const remake = (app_id: string): void => {
    if (repository.withStatus(app_id, ['queued']).length > 0) return
    db.tx(() => restart(app_id, {}))
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
    /**
     * Starts an app on another server. False while a deployment is under way or waits, and for a while after a move
     * that failed.
     */
    move(app_id: string, reason: string): boolean {
      if (repository.unfinished(app_id).length > 0) return false
      const last = repository.latest(app_id)
      const has_failed = last?.status === 'failed' && requestOf(last).reason !== undefined
      if (has_failed && clock.now() - Date.parse(last.finished_at ?? '') < MOVE_AGAIN_MS) return false
      db.tx(() => restart(app_id, { reason }))
      return true
    },
  }
}
