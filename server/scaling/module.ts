import type { AppsDomain } from '#server/apps/contract'
import type { DeploymentsDomain } from '#server/deployments/contract'
import { engineUnavailable } from '#server/kernel/errors'
import { defineModule } from '#server/kernel/module'
import type { Monitoring } from '#server/monitoring/service'
import type { Base } from '#server/platform/base'
import type { SettingsService } from '#server/settings/service'
import type { Traffic } from '#server/traffic/service'
import type { Volumes } from '#server/volumes/service'
import { deploymentDefaults } from '#server/deployments/defaults'
import { PERIOD_MS } from './decide.ts'
import { createScaling } from './service.ts'

const DAYS_KEPT = 90
/** By then the sampler and the edge have told of the period that ended. */
const AFTER_SAMPLE_MS = 3_000

interface Needs {
  apps: Pick<AppsDomain, 'find' | 'resize' | 'note'>
  deployments: Pick<DeploymentsDomain, 'sizes' | 'requireEngine' | 'refreshRoutesSoon' | 'runtime' | 'latest'>
  monitoring: Pick<Monitoring, 'reading'>
  settings: Pick<SettingsService, 'server'>
  traffic: Pick<Traffic, 'samples'>
  volumes: Pick<Volumes, 'requireReplicas'>
}

function createScalingDomain(base: Base, use: Needs) {
  const { clock, ingress } = base
  const defaults = deploymentDefaults(() => use.settings.server())
  const scaling = createScaling({
    ...base,
    ports: {
      app: (id) => use.apps.find(id),
      resize: (...change) => use.apps.resize(...change),
      note: (...event) => use.apps.note(...event),
      requireEngine: () => use.deployments.requireEngine(),
      requireReplicas: (id, replicas) => use.volumes.requireReplicas(id, replicas),
      defaultLimits: () => defaults.instance,
      liveSize: ({ live_release_id }) =>
        live_release_id === null ? undefined : use.deployments.sizes.of(live_release_id),
      currentReleases: (app) => use.deployments.sizes.current(app.id),
      configuredReplicas: ({ live_release_id }) =>
        live_release_id === null ? undefined : use.deployments.sizes.of(live_release_id)?.replicas,
      settle: (id) => use.deployments.sizes.settle(id),
      isScaling: (id) => use.deployments.sizes.isWorking(id),
      isHeld: (id) => use.deployments.sizes.isHeld(id),
      connections: (id) => use.deployments.sizes.connections(id),
      servingCount: (id) => use.deployments.sizes.serving(id).length,
      refreshRoutes: (id) => use.deployments.refreshRoutesSoon(id),
      redact: (id, text) => use.deployments.runtime.redact(id, text),
      async instances({ id, live_release_id }) {
        const serving = new Set(use.deployments.sizes.serving(id))
        const found = await base.engine.instances({ owner: { kind: 'app', id } }).catch(() => {
          throw engineUnavailable()
        })
        return found
          .filter(({ release_id }) => release_id === live_release_id)
          .map(({ address, process, index, state, limits, ...one }) => ({
            id: one.id,
            process,
            index,
            state,
            receives_requests: address !== undefined && serving.has(address),
            ...(limits ? { limits } : {}),
          }))
      },
      async serving(app_id) {
        const serving = new Set(use.deployments.sizes.serving(app_id))
        const found = await base.engine.instances({ owner: { kind: 'app', id: app_id } })
        return found.flatMap(({ id, address, limits }) =>
          address && serving.has(address) && limits ? [{ id, limits }] : [],
        )
      },
      reading: (instance_id) => use.monitoring.reading(instance_id),
      traffic: (from_ms) => use.traffic.samples.since(from_ms),
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
          ticking = scaling.tick().finally(next)
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
