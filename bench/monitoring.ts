/**
 * What monitoring costs: processor time of a sample at 10 to 500 apps, the bytes that 200 apps keep after a year,
 * and the time to read 90 days of one of them. The engine is a process of its own that answers what the real
 * one answered for one container. Times are processor times: what others do on the machine does not count. `npx node bench/monitoring.ts [--ticks=30]`
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createTestClock } from '#test/support/clock'
import { BUSYBOX_IMAGE, ensureBusyboxImage, testDocker } from '#test/support/engine-images'
import { ROOT } from '#test/support/routes'
import { type Db, openDb } from '#server/kernel/db'
import { createEvents } from '#server/kernel/events'
import { createLog } from '#server/kernel/log'
import { migrate } from '#server/kernel/migrate'
import { emptyInterval, type Interval } from '#server/monitoring/metrics/interval'
import { createMetricRepository } from '#server/monitoring/metrics/repository'
import { readSeries } from '#server/monitoring/metrics/series'
import { createMonitoring } from '#server/monitoring/service'
import { createDockerEngine } from '#server/platform/engine/docker'
import { readHost } from '#server/platform/host/reading'
import { LATENCY_BOUNDS_MS } from '#server/traffic/schema'
import { readMigrations } from '../scripts/read-migrations.ts'
import { createReport, median, ms, numberOptions } from './support/report.ts'
import type { Recorded } from './support/simulated-engine.ts'

const SIZES = [10, 100, 250, 500]
const TICK_MS = 10_000
const CORE_SHARE = 0.01
/** A sample of 500 may cost so much more per app than one of 250: what is above is not linear. */
const LINEAR = 1.5
const READ_MS = 20
const YEAR_BYTES = 300e6
const APPS = 200
const HOUR_S = 3600
const DAY_S = 86_400
/** Ten minutes before an hour is over, so that minutes and an hour are added up within the ticks. */
const BEGIN = '2026-01-31T12:57:00.000Z'
const { ticks } = numberOptions({ ticks: 30 })
const report = createReport(`Monitoring: ${ticks} samples at ${SIZES.join(', ')} apps; a year of ${APPS}`)
const folder = mkdtempSync(join(tmpdir(), 'ptr-monitoring-'))

try {
  const recorded = await record()
  const costs: number[] = []
  for (const apps of SIZES) costs.push(await cost(apps, recorded))
  const shareOf = (cost_ms: number) => `${((cost_ms / TICK_MS) * 100).toFixed(2)} % of a core`
  SIZES.forEach((apps, index) =>
    report.figure(
      `${apps} apps: processor time of a sample (mean)`,
      `${ms(costs[index]!)}, ${shareOf(costs[index]!)}`,
    ),
  )
  report.check('10 apps: below 1 % of a core', costs[0]! < TICK_MS * CORE_SHARE, shareOf(costs[0]!))
  const slope = (from: number, to: number) => (costs[to]! - costs[from]!) / (SIZES[to]! - SIZES[from]!)
  report.figure(
    'slope from 10 to 250 and from 250 to 500 apps',
    `${ms(slope(0, 2))}, ${ms(slope(2, 3))} an app`,
  )
  report.check(
    `linear: a further app costs at 500 at most ${LINEAR} of what it costs at 250`,
    slope(2, 3) <= slope(0, 2) * LINEAR,
    (slope(2, 3) / slope(0, 2)).toFixed(2),
  )
  await year()
} finally {
  rmSync(folder, { recursive: true, force: true })
}
report.end()

/** What the real engine answers for one container of ours. */
async function record(): Promise<Recorded> {
  await ensureBusyboxImage()
  const docker = testDocker()
  const container = await docker.createContainer({
    Image: BUSYBOX_IMAGE,
    Cmd: ['sleep', '600'],
    Labels: {
      'portreeve.managed': 'true',
      'portreeve.installation': 'default',
      'portreeve.release': 'rel_recorded',
      'portreeve.project': 'prj_recorded',
      'portreeve.process': 'web',
      'portreeve.index': '0',
    },
  })
  try {
    await container.start()
    const [listed] = await docker.listContainers({ filters: { id: [container.id] } })
    const [inspected, stats] = await Promise.all([
      container.inspect(),
      container.stats({ stream: false, 'one-shot': true }),
    ])
    return { listed, inspected, stats } as unknown as Recorded
  } finally {
    await container.remove({ force: true })
  }
}

function openStore(name: string) {
  const path = join(folder, name)
  const db = openDb(path)
  migrate(db, readMigrations(ROOT))
  return { db, path }
}

/** Mean processor time of this process for one sample, in milliseconds, and all that follows from it. */
async function cost(apps: number, recorded: Recorded): Promise<number> {
  const socket = join(folder, `engine-${apps}.sock`)
  const simulated = fork(fileURLToPath(new URL('support/simulated-engine.ts', import.meta.url)))
  const ready = once(simulated, 'message')
  simulated.send({ socket, recorded, apps })
  await ready
  const { db } = openStore(`cost-${apps}.db`)
  const clock = createTestClock(BEGIN)
  const log = createLog('json', 'warn', (line) => console.error(line))
  const engine = createDockerEngine({ docker_host: `unix://${socket}` })
  const resources = Array.from({ length: apps }, (_, index) => ({
    kind: 'app' as const,
    id: `app_${index}`,
    project_id: 'prj_recorded',
    name: `app-${index}`,
    status: 'running',
  }))
  const monitoring = createMonitoring({
    db,
    clock,
    log,
    events: createEvents(db, clock, log),
    audit: unused('audit'),
    policy: unused('policy'),
    clock_trust: { isTrusted: () => true },
    tools: unused('tools'),
    ports: {
      resources: () => resources,
      resource: (id) => resources.find((one) => one.id === id),
      statuses: () => ({ running: resources.length }),
      channel: () => undefined,
      previewName: () => undefined,
      statusPage: () => '',
      cronJobs: () => [],
      instances: async () =>
        (await engine.runningInstances()).map(({ id, owner }) => ({
          kind: 'app' as const,
          subject: owner.id,
          instance_id: id,
        })),
      use: (id) => engine.stats(id),
      host: () => readHost(folder),
      traffic: () => resources.map(({ id }) => trafficOf(id, clock.now() - TICK_MS)),
    },
  })
  monitoring.alerts.start()
  const tick = async () => {
    clock.advance(TICK_MS)
    await monitoring.tick()
  }
  try {
    for (let warm_up = 0; warm_up < 3; warm_up += 1) await tick()
    const before = process.cpuUsage()
    for (let count = 0; count < ticks; count += 1) await tick()
    const used = process.cpuUsage(before)
    const sampled = monitoring.series('app', resources.at(-1)!.id, {}).points.at(-1)
    if (!sampled?.instances || !sampled.requests) throw new Error('The last app was not sampled.')
    return (used.user + used.system) / 1000 / ticks
  } finally {
    monitoring.alerts.stop()
    await engine.close()
    db.close()
    simulated.kill()
  }
}

/** What is not asked for in this experiment; being asked is a fault. */
function unused<T extends object>(name: string): T {
  return new Proxy({} as T, {
    get: (_, key) => {
      throw new Error(`${name}.${String(key)} was not expected.`)
    },
  })
}

function trafficOf(app_id: string, from_ms: number) {
  const latency = Array.from({ length: LATENCY_BOUNDS_MS.length + 1 }, (_, index) => (index < 9 ? index : 0))
  const classes: [number, number, number, number, number, number] = [0, 0, 30, 3, 2, 1]
  return { app_id, from_ms, requests: 36, classes, bytes_in: 9000, bytes_out: 250_000, latency }
}

/** An interval as a busy small app has it; the numbers are as long as real ones. */
function busy(at: number, samples: number): Interval {
  const rough = (middle: number) => Math.round(middle * samples * (0.5 + Math.random()))
  return {
    ...emptyInterval(at),
    samples,
    cpu: rough(20),
    cpu_peak: rough(60),
    memory: rough(80e6),
    memory_peak: Math.round(90e6 * (0.5 + Math.random())),
    net_in: rough(40_000),
    net_out: rough(300_000),
    instances: samples,
    requests: rough(36),
    status_2xx: rough(30),
    status_3xx: rough(3),
    status_4xx: rough(2),
    status_5xx: rough(1),
    bytes_in: rough(9000),
    bytes_out: rough(250_000),
    latency: Array.from({ length: 9 }, (_, index) => `${index + 1}:${rough(4)}`).join(','),
  }
}

/**
 * The database as a year leaves it: 90 days of hours, and of minutes and samples what is kept and as much again
 * that was forgotten, written in the order of time as the sampler does.
 */
async function year(): Promise<void> {
  const { db, path } = openStore('year.db')
  const clock = createTestClock(BEGIN)
  const metrics = createMetricRepository(db)
  const now_s = Math.floor(clock.now() / 1000 / HOUR_S) * HOUR_S
  const subjects = Array.from({ length: APPS }, (_, index) => metrics.number('app', `app_${index}`))
  const empty_bytes = bytesOf(path, db)
  const spans = [
    { step_s: 3600, span_s: 100 * DAY_S, kept_s: 90 * DAY_S, samples: 360 },
    { step_s: 60, span_s: 3 * DAY_S, kept_s: 2 * DAY_S, samples: 6 },
    { step_s: 10, span_s: 4 * HOUR_S, kept_s: 2 * HOUR_S, samples: 1 },
  ]
  for (const { step_s, span_s, kept_s, samples } of spans)
    for (let at = now_s - span_s; at < now_s; at += step_s)
      db.tx(() => {
        for (const subject of subjects) metrics.write(subject, step_s, busy(at, samples))
        metrics.prune(step_s, at - kept_s)
      })
  const bytes = bytesOf(path, db) - empty_bytes
  const rows = db.sql('SELECT count(*) FROM metrics').pluck().get() as number
  report.figure(
    `rows of ${APPS} apps after a year, and bytes of each`,
    `${rows}, ${Math.round(bytes / rows)}`,
  )
  report.check(
    `${APPS} apps keep less than ${YEAR_BYTES / 1e6} MB after a year`,
    bytes < YEAR_BYTES,
    `${bytes} bytes`,
  )
  const query = { from: new Date((now_s - 90 * DAY_S) * 1000).toISOString() }
  const times = Array.from({ length: 50 }, (_, index) => {
    const before = process.cpuUsage()
    const { points } = readSeries(metrics, subjects[(index * 37) % APPS], query, now_s * 1000)
    if (points.length < 500) throw new Error(`Only ${points.length} points.`)
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  })
  report.check(
    `90 days of one app are read in less than ${READ_MS} ms (median, slowest)`,
    median(times) < READ_MS,
    `${ms(median(times))}, ${ms(Math.max(...times))}`,
  )
  db.close()
}

/** Bytes of the file, free pages and all. */
function bytesOf(path: string, db: Db): number {
  db.raw.pragma('wal_checkpoint(TRUNCATE)')
  return statSync(path).size
}
