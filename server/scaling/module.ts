import type { AppsDomain } from '#server/apps/contract'
import type { DeploymentsDomain } from '#server/deployments/contract'
import { defineModule } from '#server/kernel/module'
import type { Monitoring } from '#server/monitoring/service'
import type { Base } from '#server/platform/base'
import { askingEngine } from '#server/platform/engine/asking'
import { MAIN_PROCESS } from '#server/platform/engine/workload'
import type { Traffic } from '#server/traffic/service'
import type { Volumes } from '#server/volumes/service'
import { PERIOD_MS } from './decide.ts'
import { createScaling } from './service.ts'

const DAYS_KEPT = 90
/** By then the sampler and the edge have told of the period that ended. */
const AFTER_SAMPLE_MS = 3_000

interface Needs {
  apps: Pick<AppsDomain, 'deployed' | 'find' | 'resize' | 'note'>
  deployments: Pick<DeploymentsDomain, 'sizes' | 'requireEngine' | 'refreshRoutesSoon' | 'runtime'>
  monitoring: Pick<Monitoring, 'reading'>
  traffic: Pick<Traffic, 'samples'>
  volumes: Pick<Volumes, 'requireReplicas'>
}

function createScalingDomain(base: Base, use: Needs) {
  const { clock, ingress, log } = base
  const scaling = createScaling({
    ...base,
    ports: {
      app: (id) => use.apps.deployed(id),
      resize: (...change) => void use.apps.resize(...change),
      note(app_id, ...event) {
        const app = use.apps.find(app_id)
        if (app) use.apps.note(app, ...event)
      },
      requireEngine: () => use.deployments.requireEngine(),
      requireReplicas: (id, replicas) => use.volumes.requireReplicas(id, replicas),
      defaultLimits: () => use.deployments.sizes.defaults(),
      sizeOf: (release_id) => use.deployments.sizes.of(release_id),
      currentReleases: (app_id) => use.deployments.sizes.current(app_id),
      settle: (id) => use.deployments.sizes.settle(id),
      isScaling: (id) => use.deployments.sizes.isWorking(id),
      isHeld: (id) => use.deployments.sizes.isHeld(id),
      connections: (id) => use.deployments.sizes.connections(id),
      servingCount: (id) => use.deployments.sizes.serving(id).length,
      refreshRoutes: (id) => use.deployments.refreshRoutesSoon(id),
      redact: (id, text) => use.deployments.runtime.redact(id, text),
      async instances({ id, live_release_id }) {
        const serving = new Set(use.deployments.sizes.serving(id))
        const found = await askingEngine(() => base.engine.instances({ owner: { kind: 'app', id } }))
        return found
          .filter(({ release_id }) => release_id === live_release_id)
          .map(({ address, process, index, state, limits, ...one }) => ({
            id: one.id,
            process,
            index,
            state,
            receives_requests: process === MAIN_PROCESS && address !== undefined && serving.has(address),
            ...(limits ? { limits } : {}),
          }))
      },
      reading: (instance_id) => use.monitoring.reading(instance_id),
      traffic: (from_ms) => use.traffic.samples.since(from_ms),
      lastPeriod: (app_id) => use.traffic.samples.lastPeriod(app_id),
    },
  })
  const stopping = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let ticking: Promise<void> | undefined
  return {
    ...scaling,
    start(): void {
      ingress.followWakes({ signal: stopping.signal, onWake: scaling.onWake })
      scaling.start()
      const next = () => {
        if (stopping.signal.aborted) return
        const wait_ms = PERIOD_MS - ((clock.now() - AFTER_SAMPLE_MS) % PERIOD_MS)
        timer = setTimeout(() => {
          // Nobody awaits a look: one that fails is told, and the next one comes all the same.
          ticking = scaling
            .tick()
            .catch((error: unknown) => log.warn('Apps could not be looked at for scaling', { error }))
            .finally(next)
        }, wait_ms).unref()
      }
      next()
    },
    async stop(): Promise<void> {
      stopping.abort()
      clearTimeout(timer)
      scaling.stop()
      await ticking
    },
  }
}

export default defineModule({
  name: 'scaling',
  tags: [
    {
      name: 'scaling',
      description: 'Instances of apps: how many, how large, by which rule, and none while nobody asks.',
      paths: /^apps\/:id\/scaling\b/,
    },
  ],
  create: createScalingDomain,
  retention: {
    scaling_decisions: (own, _use, { clock }) =>
      own.prune(new Date(clock.now() - DAYS_KEPT * 86_400_000).toISOString()),
  },
  start: (own) => own.start(),
  stop: (own) => own.stop(),
})
