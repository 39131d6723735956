import { defineJob, Later } from '#server/kernel/jobs/definition'
import type { Jobs } from '#server/kernel/jobs/jobs'
import { type Engine, EngineError } from '#server/platform/engine/engine'
import { networkOf } from '#server/platform/engine/network-name'

const KIND = 'projects.remove_network'
/** Whatever uses it goes within minutes, or somebody looks for it. */
const ATTEMPTS = 20
/** However long the engine is away: once the project is gone nobody else knows of its network. */
const ENGINE_PAUSE_MS = 5_000

/**
 * Takes the network of a deleted project away: a durable job, queued in the transaction of the deletion. An engine
 * has room for some hundred networks.
 */
export function createNetworkRemoval(jobs: Jobs, engine: Pick<Engine, 'removeNetwork'>) {
  jobs.define(
    defineJob<{ project_id: string }, object>({
      kind: KIND,
      initial: () => ({}),
      classify: (error) => ({
        kind: 'system',
        code: 'network_in_use',
        message: (error as Error).message,
        hint: 'It will be tried again. Check what on the engine still uses the network of the deleted project.',
        log: [],
      }),
      steps: [
        {
          name: 'network',
          attempts: ATTEMPTS,
          run: ({ payload: { project_id } }) =>
            engine.removeNetwork(networkOf({ project_id })).catch((error: unknown) => {
              const is_away = error instanceof EngineError && error.code === 'unavailable'
              throw is_away ? new Later(ENGINE_PAUSE_MS) : error
            }),
        },
      ],
    }),
  )
  return {
    enqueue(project_id: string): void {
      jobs.enqueue({
        kind: KIND,
        payload: { project_id },
        lane: `${KIND}:${project_id}`,
        subject: project_id,
        project_id: null,
      })
    },
  }
}
