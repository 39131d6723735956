import { defineJob } from '#server/kernel/jobs/definition'
import type { Jobs } from '#server/kernel/jobs/jobs'
import type { Engine } from '#server/platform/engine/engine'
import { networkOf } from '#server/platform/engine/network-name'

const KIND = 'projects.remove_network'
/** The engine is back within minutes, or somebody mends it. */
const ATTEMPTS = 20

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
          run: ({ payload: { project_id } }) => engine.removeNetwork(networkOf({ project_id })),
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
