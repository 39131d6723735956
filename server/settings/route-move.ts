import { defineJob } from '#server/kernel/jobs/definition'
import type { Jobs } from '#server/kernel/jobs/jobs'

const KIND = 'settings.move_routes'
/** The edge is back within seconds, or somebody mends it. */
const ATTEMPTS = 20

/**
 * Hands the new names of apps to the edge after the base domain has changed: a durable job, queued in the
 * transaction of the change.
 * @param move sets the routes of these apps anew. Idempotent.
 */
export function createRouteMove(jobs: Jobs, move: (app_ids: readonly string[]) => Promise<void>) {
  jobs.define(
    defineJob<{ app_ids: string[] }, object>({
      kind: KIND,
      initial: () => ({}),
      classify: (error) => ({
        kind: 'system',
        code: 'edge_unavailable',
        message: (error as Error).message,
        hint: 'The routes are set again when the edge is back.',
        log: [],
      }),
      steps: [{ name: 'routes', attempts: ATTEMPTS, run: ({ payload }) => move(payload.app_ids) }],
    }),
  )
  return {
    enqueue(app_ids: string[]): void {
      if (app_ids.length > 0)
        jobs.enqueue({
          kind: KIND,
          payload: { app_ids },
          lane: KIND,
          subject: 'settings',
          project_id: null,
        })
    },
  }
}
