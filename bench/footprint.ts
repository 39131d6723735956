/**
 * Idle memory of the server, and how soon it answers after its start.
 * `npx node bench/footprint.ts [--starts=10] [--idle_s=15]`
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { onStage } from './support/stage.ts'
import { createReport, median, ms, numberOptions } from './support/report.ts'
import { spawnServer, timedGet } from './support/server.ts'

const RSS_LIMIT_MB = 110
const HEALTH_LIMIT_MS = 500
const options = numberOptions({ starts: 10, idle_s: 15 })
const report = createReport('Memory when idle and time to the first answer')

const rssMb = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024

/**
 * Processor time that a process has used: unlike the wall time it does not depend on what else the machine
 * does.
 */
function processorMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

const health: number[] = []
const busy: number[] = []
const data_directory = mkdtempSync(join(tmpdir(), 'ptr-footprint-'))
try {
  // The first start makes keys and tables; the starts that count come after it.
  for (let start = 0; start <= options.starts; start += 1) {
    const server = await spawnServer(data_directory, {
      DOCKER_HOST: 'unix:///nonexistent/docker.sock',
    })
    const took_ms = await server.firstAnswer('/healthz')
    if (start === 0) report.figure('first start of an installation, /healthz', ms(took_ms))
    else {
      health.push(took_ms)
      busy.push(processorMs(server.pid))
    }
    await server.stop()
  }
} finally {
  rmSync(data_directory, { recursive: true, force: true })
}

await onStage(
  async ({ portreeve }) => {
    await portreeve.stop()
    const began = performance.now()
    await portreeve.start()
    report.figure(
      'first 200 of /readyz with the engine and the edge (and a login)',
      ms(performance.now() - began),
    )
    for (const path of ['/api/apps', '/api/deployments', '/api/system/info', '/api/auth/me', '/api/domains'])
      await timedGet(`${portreeve.url}${path}`, portreeve.token())
    report.figure('resident after the login and a few requests', `${rssMb(portreeve.pid()).toFixed(1)} MB`)
    const samples: number[] = []
    for (let second = 0; second < options.idle_s; second += 1) {
      await delay(1000)
      samples.push(rssMb(portreeve.pid()))
    }
    const settled = median(samples.slice(-5))
    report.check(
      `idle resident memory below ${RSS_LIMIT_MB} MB`,
      settled < RSS_LIMIT_MB,
      `${settled.toFixed(1)} MB`,
    )
  },
  { PORTREEVE_LOG_LEVEL: 'info' },
)
report.figure('processor time until then', ms(median(busy)))
report.check(
  `/healthz below ${HEALTH_LIMIT_MS} ms after the spawn (median of ${options.starts})`,
  median(health) < HEALTH_LIMIT_MS,
  `${ms(median(health))} (slowest ${ms(Math.max(...health))})`,
)
report.end()
