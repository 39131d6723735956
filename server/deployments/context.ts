import type { Jobs } from '#server/kernel/jobs/jobs'
import { createCommands } from './commands.ts'
import { instancesOfRelease } from './processes.ts'
import { createRouting, NOTHING } from './routing.ts'
import { createScaler } from './scaler.ts'
import { createSlowClones } from './slow-clones.ts'
import { type DeployContext, type DeployParts, targetOf } from './work.ts'

/**
 * What all steps of deployments share: the parts that are handed in, with the one place that sets routes, the
 * one that changes how many instances run, and the soaks that are under way.
 * @param scaled The instances of an app were changed, so that it is to be looked at.
 */
export function createDeployContext(
  parts: DeployParts,
  { jobs, advance, scaled }: { jobs: Jobs; advance: DeployContext['advance']; scaled(): void },
): DeployContext {
  const { apps, ports, deployments, releases } = parts
  const context: DeployContext = {
    ...parts,
    advance,
    commands: createCommands(apps.requireBeside),
    fetchFor: createSlowClones(),
    routing: createRouting({
      ingress: parts.ingress,
      log: parts.log,
      routes: ports.routes,
      others: ports.platformRoutes,
      certificates: ports.certificates,
      certificatesRefused: ports.certificatesRefused,
      routed: ports.routed,
      async current(app_id) {
        const app = apps.get(app_id)
        const release = app.live_release_id ? releases.find(app.live_release_id) : undefined
        if (app.status === 'deleting') return undefined
        return release ? targetOf(await instancesOfRelease(parts.engine, release), release.settings) : NOTHING
      },
    }),
    soaks: {
      under_way: new Map(),
      areOver: (app_id) =>
        jobs.findBySubject(app_id)?.status === 'queued' ||
        deployments.withStatus(app_id, ['queued']).length > 0,
    },
    scaler: {
      settle: (id) => scaler.settle(id),
      isWorking: (id) => scaler.isWorking(id),
      interrupt: (id) => scaler.interrupt(id),
      stop: () => scaler.stop(),
    },
  }
  const scaler = createScaler(context, scaled)
  return context
}
