import { mapInPieces } from '#server/kernel/pace'
import { type Actor, visibleProjects } from '#server/kernel/access'
import type { ClockTrust } from '#server/kernel/clock-trust'
import { type PlatformEvent, toldName } from '#server/kernel/events'
import { type AlertOptions, type AlertPorts, type Alerts, createAlerts } from './alerts/service.ts'
import type { WatchedSubject } from './alerts/watch.ts'
import type { Interval } from './metrics/interval.ts'
import { createMetricRepository, type SubjectKind } from './metrics/repository.ts'
import { createRollup } from './metrics/rollup.ts'
import { createSampler, SAMPLE_S, type SamplerPorts, SERVER } from './metrics/sampler.ts'
import { pointOf, readSeries, type SeriesQuery } from './metrics/series.ts'
import { type MetricFamily, renderPrometheus } from './prometheus.ts'
import type { MonitoringOverview } from './schema.ts'
import { createUptime, type UptimeOptions } from './uptime/service.ts'

/** An app or database as monitoring knows it. */
export interface MonitoredResource {
  kind: 'app' | 'database'
  id: string
  project_id: string
  name: string
  status: string
}
export interface MonitoringPorts extends SamplerPorts {
  resources(): MonitoredResource[]
  /** One of them; undefined when there is none of that id. */
  resource(id: string): MonitoredResource | undefined
  /** How many apps have each status, in these projects (undefined: all). */
  statuses(project_ids: readonly string[] | undefined): Record<string, number>
  channel: AlertPorts['channel']
  /** What people call the preview that an app runs; undefined for any other app. */
  previewName(app_id: string): string | undefined
  /** Path of the public page of a project. */
  statusPage(project_id: string): string
  /** Ids of the cron jobs of an app. */
  cronJobs(app_id: string): string[]
}
export interface MonitoringOptions
  extends Omit<AlertOptions, 'ports'>,
    Pick<UptimeOptions, 'log' | 'policy' | 'tools'> {
  clock_trust: ClockTrust
  ports: MonitoringPorts
}

/** A sample that is older says nothing about now. */
const FRESH_S = 60
const TOP = 5
const DISK_LIMIT_PERCENT = 85

/** Whether the parts of the platform answer, by part. */
interface Readiness {
  checks: Record<string, { ok: boolean; message?: string }>
}

/** Metrics, alerts and uptime checks. */
export function createMonitoring(options: MonitoringOptions) {
  const { db, clock, log, ports } = options
  const metrics = createMetricRepository(db)
  const sampler = createSampler({ db, clock, log, metrics, ports })
  const rollUp = createRollup({ db, clock, clock_trust: options.clock_trust, metrics })
  const now_s = () => Math.floor(clock.now() / 1000)
  const find = (id: string) => ports.resource(id)

  const latestOf = (kind: SubjectKind, subject: string): Interval | undefined => {
    const number = metrics.find(kind, subject)
    return number === undefined
      ? undefined
      : metrics.range(number, SAMPLE_S, now_s() - FRESH_S, now_s() + 1).at(-1)
  }
  /** What was sampled of late; what does not run, however much there is, is not looked at. */
  const subjects = (): WatchedSubject[] =>
    metrics
      .recent(SAMPLE_S, now_s() - FRESH_S, now_s() + 1)
      .flatMap(({ kind, id, ...latest }): WatchedSubject[] => {
        if (kind === 'server') return [{ kind, id, project_id: null, name: 'the server', latest }]
        const found = find(id)
        return found ? [{ kind, id, project_id: found.project_id, name: found.name, latest }] : []
      })
  /** What an event is about: its app, or what its payload names; of a part of an app, which may have others, that part. */
  const nameOf = ({ app_id, payload, project_id }: PlatformEvent) => {
    const { cron_job_id, database_id, volume_id, node_id, target_id, uptime_check_id, certificate_id } =
      payload
    const part = [cron_job_id, uptime_check_id].find((value) => typeof value === 'string') as
      | string
      | undefined
    if (part) {
      const own = toldName(payload) ?? part
      const app = find(app_id ?? '')?.name
      return { id: part, name: app === undefined || app === own ? own : `${own} of ${app}` }
    }
    const named = [app_id, database_id, volume_id, node_id, target_id, certificate_id]
    const id = named.find((value) => typeof value === 'string') ?? project_id ?? payload.target
    if (typeof id !== 'string') return undefined
    return { id, name: find(id)?.name ?? ports.previewName(id) ?? toldName(payload) ?? id }
  }
  const alerts: Alerts = createAlerts({
    ...options,
    ports: {
      subjects,
      nameOf,
      appOf: (id) => (find(id)?.kind === 'app' ? id : uptime.appOf(id)),
      projectOf: (kind, id) => {
        const found = find(id)
        return found?.kind === kind ? found.project_id : undefined
      },
      channel: ports.channel,
    },
  })
  const uptime = createUptime({
    ...options,
    ports: {
      appProject: (id) => (find(id)?.kind === 'app' ? find(id)!.project_id : undefined),
      statusPage: ports.statusPage,
    },
  })

  const consumers = (apps: readonly WatchedSubject[], read: (latest: Interval) => number | null) =>
    apps
      .map(({ id, name, latest }) => ({ id, name, value: read(latest) ?? 0 }))
      .filter(({ value }) => value > 0)
      .sort((a, b) => b.value - a.value)
      .slice(0, TOP)

  return {
    alerts,
    uptime,
    reading: sampler.reading,
    /**
     * One sample, then what follows from it: longer intervals, alerts, uptime checks that are due. Never throws.
     */
    async tick(): Promise<void> {
      await sampler.sample()
      try {
        await rollUp()
        await alerts.evaluate()
        uptime.wake()
      } catch (error) {
        log.error('Metrics cannot be worked on now', { error })
      }
    },
    series: (kind: SubjectKind, id: string, query: SeriesQuery) =>
      readSeries(metrics, metrics.find(kind, id), query, clock.now()),
    /** The checks of the other parts with those that only matter over time. */
    health(readiness: Readiness) {
      const server = latestOf('server', SERVER)
      const full = server?.disk_total ? ((server.disk_used ?? 0) / server.disk_total) * 100 : undefined
      const disk =
        full === undefined || full <= DISK_LIMIT_PERCENT
          ? { ok: true }
          : { ok: false, message: `The data disk is ${Math.round(full)} % full.` }
      const checks = { ...readiness.checks, disk }
      const is_well = Object.values(checks).every(({ ok }) => ok)
      return { status: is_well ? ('ok' as const) : ('degraded' as const), checks }
    },
    overview(actor: Actor): MonitoringOverview {
      const visible = visibleProjects(actor)
      const ids = visible && new Set<string | null>(visible)
      const apps = subjects().filter(
        ({ kind, project_id }) => kind === 'app' && (ids?.has(project_id) ?? true),
      )
      const server = latestOf('server', SERVER)
      return {
        apps: ports.statuses(visible),
        top_cpu: consumers(apps, ({ cpu }) => (cpu === null ? null : cpu / 1000)),
        top_memory: consumers(apps, ({ memory }) => memory),
        server: server ? pointOf(server, SAMPLE_S) : null,
        alerts: alerts.firing(actor),
      }
    },
    /** Numbers of everything that the caller may see, in the text format of Prometheus. */
    async prometheus(actor: Actor): Promise<string> {
      const visible = visibleProjects(actor)
      const ids = visible && new Set(visible)
      const latest = new Map(subjects().map((one) => [one.id, one.latest]))
      const own = ports.resources().filter(({ project_id }) => ids?.has(project_id) ?? true)
      const rows = await mapInPieces(actor.user_id, own, ({ kind, id, name, status }) => ({
        labels: { kind, id, name },
        status,
        latest: latest.get(id),
      }))
      const server = visible === undefined ? latestOf('server', SERVER) : undefined
      const family = (
        name: string,
        help: string,
        read: (latest: Interval) => number | null,
      ): MetricFamily => ({
        name,
        help,
        type: 'gauge',
        samples: rows.flatMap(({ labels, latest: found }) => (found ? [{ labels, value: read(found) }] : [])),
      })
      const ofServer = (name: string, help: string, value: number | null | undefined): MetricFamily => ({
        name,
        help,
        type: 'gauge',
        samples: [{ value: value ?? null }],
      })
      return renderPrometheus(actor.user_id, [
        {
          name: 'portreeve_resource_up',
          help: 'Whether an app or database runs.',
          type: 'gauge',
          samples: rows.map(({ labels, status }) => ({ labels, value: Number(status === 'running') })),
        },
        family('portreeve_resource_cpu_cores', 'Processor time in cores.', ({ cpu }) =>
          cpu === null ? null : cpu / 1000,
        ),
        family('portreeve_resource_memory_bytes', 'Memory in use.', ({ memory }) => memory),
        family('portreeve_resource_instances', 'Running instances.', ({ instances }) => instances),
        family('portreeve_http_requests_10s', 'Requests of the last ten seconds.', (one) => one.requests),
        family(
          'portreeve_http_errors_10s',
          'Failed requests of the last ten seconds.',
          (one) => one.status_5xx,
        ),
        ofServer(
          'portreeve_server_cpu_cores',
          'Processor time of the server.',
          server?.cpu && server.cpu / 1000,
        ),
        ofServer('portreeve_server_memory_used_bytes', 'Used memory of the server.', server?.memory),
        ofServer('portreeve_server_memory_total_bytes', 'Memory of the server.', server?.memory_total),
        ofServer('portreeve_server_disk_used_bytes', 'Used bytes of the data disk.', server?.disk_used),
        ofServer(
          'portreeve_server_disk_total_bytes',
          'Size of the data disk, without what its file system keeps for the administrator.',
          server?.disk_total,
        ),
        ofServer('portreeve_alerts_firing', 'Alerts that fire.', alerts.countFiring(actor)),
      ])
    },
    /** Alerts and uptime checks of an app, and the rules that watch it alone, go where it went. */
    moved(app_id: string): void {
      const app = find(app_id)
      if (!app) return
      alerts.moved(app_id, app.project_id, [...uptime.idsOf(app_id), ...ports.cronJobs(app_id)])
      uptime.moved(app_id, app.project_id)
    },
    /** What watched an app goes with it. */
    removed(app_id: string): void {
      metrics.forget('app', app_id)
      uptime.removed(app_id)
      alerts.removed(app_id)
    },
  }
}
export type Monitoring = ReturnType<typeof createMonitoring>
