/**
 * How soon the server answers after its start, its memory when idle, and while and after 32 connections ask for
 * lists (with `wrk` where it is installed).
 * `npx node bench/footprint.ts [--starts=10] [--idle_s=15] [--busy_s=60]`; with `PORTREEVE_PROGRAM=$PWD/dist/portreeve`
 * the same of the one-file program.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { startPortreeve } from '#test/support/portreeve'
import { createReport, median, ms, numberOptions } from './support/report.ts'
import { spawnServer, timedGet } from './support/server.ts'

const RSS_LIMIT_MB = 85
const BUSY_LIMIT_MB = 150
const AFTER_LIMIT_MB = 110
const API_LIMIT_MS = 450
const CONNECTIONS = 32
const options = numberOptions({ starts: 10, idle_s: 15, busy_s: 60 })
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
const api: number[] = []
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
      // Whoever has no session is told so by what stands behind the start.
      api.push(await server.firstAnswer('/api/auth/me', 401))
      busy.push(processorMs(server.pid))
    }
    await server.stop()
  }
} finally {
  rmSync(data_directory, { recursive: true, force: true })
}

/** Lists for a minute, then the same time of rest. */
async function underLoad(): Promise<void> {
  const requested = promisify(execFile)('wrk', [
    '-t1',
    `-c${CONNECTIONS}`,
    `-d${options.busy_s}s`,
    '--timeout',
    '20s',
    '-H',
    `Authorization: Bearer ${portreeve.token()}`,
    `${portreeve.url}/api/apps`,
  ]).then(
    ({ stdout }) => stdout,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      throw error
    },
  )
  let most_mb = 0
  const watch = setInterval(() => {
    most_mb = Math.max(most_mb, rssMb(portreeve.pid()))
  }, 500)
  const told = await requested
  clearInterval(watch)
  if (told === undefined) return report.figure('memory under load', 'not measured: wrk is not installed')
  if (/Non-2xx|Socket errors/.test(told)) throw new Error(told)
  report.figure(
    `lists a second over ${CONNECTIONS} connections, beside the load generator`,
    /Requests\/sec:\s+([\d.]+)/.exec(told)?.[1] ?? told,
  )
  report.check(
    `resident meanwhile below ${BUSY_LIMIT_MB} MB`,
    most_mb < BUSY_LIMIT_MB,
    `${most_mb.toFixed(1)} MB`,
  )
  await delay(options.busy_s * 1000)
  const after_mb = rssMb(portreeve.pid())
  report.check(
    `resident ${options.busy_s} s later below ${AFTER_LIMIT_MB} MB`,
    after_mb < AFTER_LIMIT_MB,
    `${after_mb.toFixed(1)} MB`,
  )
}

const portreeve = await startPortreeve({ env: { PORTREEVE_LOG_LEVEL: 'info' }, is_watched: false })
try {
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
    `idle resident memory at most ${RSS_LIMIT_MB} MB`,
    settled <= RSS_LIMIT_MB,
    `${settled.toFixed(1)} MB`,
  )
  await underLoad()
} finally {
  await portreeve.dispose()
}
report.figure('processor time until then', ms(median(busy)))
report.figure(
  `/healthz after the spawn (median of ${options.starts})`,
  `${ms(median(health))} (slowest ${ms(Math.max(...health))})`,
)
report.check(
  `the API at most ${API_LIMIT_MS} ms after the spawn (median of ${options.starts})`,
  median(api) <= API_LIMIT_MS,
  `${ms(median(api))} (slowest ${ms(Math.max(...api))})`,
)
report.end()
