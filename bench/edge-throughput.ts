import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { docker, freePorts, openTestEdge } from '../test/platform/ingress/edge.ts'
import { equal, minimal, origin, startBareProxy, type BareProxy } from './support/bare-proxy.ts'
import { median, type Report } from './support/report.ts'
import { percentile, runLoad } from './support/strict-client.ts'

const ROUNDS = 8
/** Long enough that the first request of a connection is not among the slowest hundredth. */
const SECONDS = 3
const CONNECTIONS = 50
const LEAST = 0.95

/** Processor time is the proxy's own, per request. */
interface Sample { per_second: number; p99_ms: number; cpu_us: number }
interface Subject { container: string; url: string }
/** What two found that were asked at the same time, round by round. */
interface Duel { own: Sample[]; other: Sample[] }
type Scheme = 'http' | 'https'

/**
 * The edge against HAProxy by hand in front of the same origin: `equal` does the same for each request, `minimal` forwards and
 * does nothing else. Both are loaded at the same moment, each by a client of its own: whatever else the machine does falls on
 * both alike, the cores are shared fairly between them, and the one that needs less for a request answers more of them. Nobody
 * reads the log of either meanwhile.
 */
export async function throughputReport(report: Report): Promise<void> {
  const schemes: Scheme[] = await hasWrk() ? ['http', 'https'] : ['http']
  report.figure('load on each at once', `${await hasWrk() ? 'wrk' : 'the strict client, without TLS'}, ${CONNECTIONS} connections, ${ROUNDS} rounds of ${SECONDS} s, medians`)
  const [origin_port = 0] = await freePorts(1)
  const behind = await startBareProxy(origin_port, origin(origin_port))
  try {
    for (const count of [1, 10_000]) await compare(report, schemes, origin_port, count)
  } finally {
    await behind.close()
  }
}

async function compare(report: Report, schemes: Scheme[], origin_port: number, count: number): Promise<void> {
  const [port = 0, tls_port = 0, low_port = 0, low_tls_port = 0] = await freePorts(4)
  const edge = await openTestEdge()
  const started: BareProxy[] = []
  try {
    await edge.ingress.ensure()
    await edge.ingress.apply({ routes: Array.from({ length: count }, (_, index) => ({ id: `dom_${index}`, app_id: `app_${index}`, hostnames: [`app-${index}.test`], servers: [{ address: '127.0.0.1', port: origin_port }] })) })
    const equally = await startBareProxy(port, equal({ port, tls_port, origin_port, count }), count)
    const low = await startBareProxy(low_port, minimal({ port: low_port, tls_port: low_tls_port, origin_port, count }))
    started.push(equally, low)
    for (const scheme of schemes) {
      const subject = (container: string, plain: number, secure: number): Subject => ({ container, url: `${scheme}://127.0.0.1:${scheme === 'https' ? secure : plain}/` })
      const own = subject(edge.container.name, edge.edge.port, edge.https.port)
      const name = `${scheme === 'https' ? 'TLS' : 'HTTP'}, ${count === 1 ? '1 route' : `${count} routes`}`
      tell(report, name, await duel(own, subject(equally.container, port, tls_port)), await duel(own, subject(low.container, low_port, low_tls_port)))
    }
  } finally {
    await Promise.all(started.map((proxy) => proxy.close()))
    await edge.close()
  }
}

async function duel(own: Subject, other: Subject): Promise<Duel> {
  const found: Duel = { own: [], other: [] }
  const pids = await Promise.all([own, other].map(async ({ container }) => (await docker.getContainer(container).top()).Processes.map((columns: string[]) => Number(columns[1]))))
  await Promise.all([own, other].map(({ url }) => load(url)))
  for (let round = 0; round < ROUNDS; round++) {
    const [mine, theirs] = await Promise.all([own, other].map(({ url }, index) => measure(url, pids[index] ?? [])))
    if (mine && theirs) found.own.push(mine), found.other.push(theirs)
  }
  return found
}

/** Above 1 the edge is the better one. */
function tell(report: Report, name: string, equally: Duel, low: Duel): void {
  const middle = (samples: Sample[], value: keyof Sample) => median(samples.map((sample) => sample[value]))
  const show = (samples: Sample[]) => `${middle(samples, 'per_second').toFixed(0)}/s, p99 ${middle(samples, 'p99_ms').toFixed(1)} ms, ${middle(samples, 'cpu_us').toFixed(1)} us`
  const ratio = ({ own, other }: Duel, value: keyof Sample) => median(own.map((sample, round) => {
    const theirs = other[round]?.[value] ?? Number.NaN
    return value === 'per_second' ? sample[value] / theirs : theirs / sample[value]
  }))
  report.figure(`${name}: edge and equal by hand`, `${show(equally.own)}; ${show(equally.other)}`)
  report.figure(`${name}: edge and minimal by hand`, `${show(low.own)}; ${show(low.other)}`)
  for (const [value, what] of [['per_second', 'throughput'], ['p99_ms', 'p99']] as const) {
    const found = ratio(equally, value)
    report.check(`${name}: ${what} to equal by hand`, found >= LEAST, `${found.toFixed(3)} (to minimal ${ratio(low, value).toFixed(3)})`)
  }
  report.figure(`${name}: processor time to equal by hand`, `${ratio(equally, 'cpu_us').toFixed(3)} (to minimal ${ratio(low, 'cpu_us').toFixed(3)})`)
}

async function measure(url: string, pids: number[]): Promise<Sample> {
  const before = processorTime(pids)
  const { requests, ...sample } = await load(url)
  return { ...sample, cpu_us: (processorTime(pids) - before) / 1_000 / requests }
}

/** Of all threads, in nanoseconds. */
const processorTime = (pids: number[]): number => pids.flatMap((pid) => readdirSync(`/proc/${pid}/task`).map((thread) => `/proc/${pid}/task/${thread}/schedstat`))
  .reduce((sum, path) => sum + Number(readFileSync(path, 'utf8').split(' ')[0]), 0)

async function load(url: string): Promise<Omit<Sample, 'cpu_us'> & { requests: number }> {
  if (!(await hasWrk())) {
    const result = await runLoad({ host: '127.0.0.1', port: Number(new URL(url).port), host_header: 'app-0.test', connections: CONNECTIONS, until: new Promise((resolve) => setTimeout(resolve, SECONDS * 1_000)) })
    if (result.failed_total > 0) throw new Error(JSON.stringify(result.failed))
    return { per_second: result.ok / result.duration_ms * 1_000, p99_ms: percentile(result.latencies, 0.99), requests: result.ok }
  }
  const { stdout } = await promisify(execFile)('wrk', ['-t1', `-c${CONNECTIONS}`, `-d${SECONDS}s`, '--latency', '-H', 'Host: app-0.test', url], { timeout: 60_000 })
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(stdout)
  const [, value = '', unit = ''] = /99%\s+([\d.]+)(us|ms|s)/.exec(stdout) ?? []
  return { per_second: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]), p99_ms: Number(value) * ({ us: 0.001, ms: 1, s: 1_000 }[unit] ?? Number.NaN), requests: Number(/(\d+) requests in/.exec(stdout)?.[1]) }
}

let wrk: Promise<boolean> | undefined
/** wrk prints its version and exits with 1. */
const hasWrk = () => (wrk ??= promisify(execFile)('wrk', ['--version']).then(() => true, (error: { code?: unknown }) => error.code === 1))
