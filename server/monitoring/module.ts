import type { AlertPorts } from './alerts/service.ts'
import type { Addresses } from '#server/addresses/service'
import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import type { Previews } from '#server/previews/service'
import { createDial } from '#server/platform/outbound/dial'
import type { Traffic } from '#server/traffic/service'
import { readHost } from '#server/platform/host/reading'
import { SAMPLE_S, type SampledInstance } from './metrics/sampler.ts'
import { createMonitoring, type MonitoredResource } from './service.ts'
import { createStatusPages } from './status-pages.ts'

const HISTORY_KEPT_DAYS = 90
const WATCHED = new Set(['app', 'database'])

interface Needs {
  traffic: Pick<Traffic, 'samples'>
  webhooks: Pick<AlertPorts, 'channel'>
  projects: { nameOf(id: string): string | undefined }
  cron: { idsOf(app_id: string): string[] }
  previews: Pick<Previews, 'ofRunner'>
  addresses: Pick<Addresses, 'public_url'>
}

function createMonitoringDomain(base: Base, use: Needs) {
  const { engine, config, policy, client, modules, db, clock } = base
  const sources = () => modules.sources('overview').filter(({ kind }) => WATCHED.has(kind))
  function resource(id: string): MonitoredResource | undefined {
    for (const source of sources()) {
      const found = source.find(id)
      if (found) return found as MonitoredResource
    }
    return undefined
  }
  /** Its name may say neither whose preview it is nor of what. */
  function previewName(app_id: string): string | undefined {
    const preview = use.previews.ofRunner(app_id)
    if (!preview) return undefined
    const what = preview.source === 'api' ? 'preview' : 'pull request'
    const app = resource(preview.app_id)?.name ?? preview.app_id
    return `${preview.name} (${what} ${preview.number} of ${app})`
  }
  const monitoring = createMonitoring({
    ...base,
    tools: { client, dial: createDial(policy) },
    ports: {
      resources: () => sources().flatMap((source) => source.all() as MonitoredResource[]),
      resource,
      statuses: (project_ids) =>
        Object.fromEntries(
          sources()
            .filter(({ kind }) => kind === 'app')
            .flatMap((source) => source.statuses(project_ids).map(({ status, n }) => [status, n])),
        ),
      channel: (id) => use.webhooks.channel(id),
      previewName,
      instances: async () =>
        (await engine.runningInstances()).flatMap(({ id, owner }): SampledInstance[] =>
          owner.kind === 'app' || owner.kind === 'database'
            ? [{ kind: owner.kind, subject: owner.id, instance_id: id }]
            : [],
        ),
      use: (instance_id) => engine.stats(instance_id),
      host: () => readHost(config.data_directory),
      statusPage: (project_id) => status_pages.pathOf(project_id),
      cronJobs: (app_id) => use.cron.idsOf(app_id),
      traffic: (from_ms) => use.traffic.samples.since(from_ms),
    },
  })
  const status_pages = createStatusPages({
    db,
    clock,
    shown: (project_id) => monitoring.uptime.shown(project_id),
    projectName: (id) => use.projects.nameOf(id),
    publicUrl: () => use.addresses.public_url(),
  })
  let timer: NodeJS.Timeout | undefined
  let ticking: Promise<void> | undefined
  let is_running = false
  return {
    ...monitoring,
    status_pages,
    /** Samples on whole tens of seconds, so that intervals of all subjects begin together. */
    start(): void {
      monitoring.alerts.start()
      is_running = true
      const tick = async () => {
        ticking = monitoring.tick()
        await ticking
        next()
      }
      const next = () => {
        if (!is_running) return
        const wait_ms = SAMPLE_S * 1000 - (clock.now() % (SAMPLE_S * 1000))
        timer = setTimeout(() => void tick(), wait_ms).unref()
      }
      next()
    },
    async stop(): Promise<void> {
      is_running = false
      clearTimeout(timer)
      await ticking
      monitoring.alerts.stop()
      monitoring.uptime.end()
      await monitoring.uptime.idle()
    },
  }
}

export default defineModule({
  name: 'monitoring',
  tags: [{ name: 'monitoring', description: 'Metrics, alerts, uptime checks and health.' }],
  resources: [
    { noun: 'alert_rule', prefix: 'alr', table: 'alert_rules', listed: 'nowhere' },
    { noun: 'uptime_check', prefix: 'upt', table: 'uptime_checks', status_column: 'status' },
  ],
  create: createMonitoringDomain,
  retention: {
    alerts: (own, _use, { clock }) =>
      own.alerts.prune(new Date(clock.now() - HISTORY_KEPT_DAYS * 86_400_000).toISOString()),
    uptime_results: (own) => own.uptime.prune(),
  },
  app: {
    moved: (own, app_id) => own.moved(app_id),
    removed: (own, app_id) => own.removed(app_id),
  },
  start: (own) => own.start(),
  stop: (own) => own.stop(),
})
