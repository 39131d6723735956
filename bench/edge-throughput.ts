import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { docker, freePorts, openTestEdge } from '../test/platform/ingress/edge.ts'
import { equal, minimal, origin, startBareProxy, type BareProxy } from './support/bare-proxy.ts'
import { median, type Report } from './support/report.ts'
import { percentile, runLoad } from './support/strict-client.ts'

/** Many short turns: what the machine does beside lasts seconds, and must fall on all of them alike. */
const ROUNDS = 30
const SECONDS = 1
const CONNECTIONS = 50
const LEAST = 0.95
const RESAMPLES = 2_000

/** Processor time is the proxy's own, per request. */
interface Sample {
  per_second: number
  p99_ms: number
  cpu_us: number
}
interface Subject {
  container: string
  url: string
}
type Name = 'edge' | 'equal' | 'twin' | 'minimal'
type Scheme = 'http' | 'https'

/**
 * The edge against HAProxy by hand in front of the same origin: `equal` does the same for each request,
 * `minimal` forwards and does nothing else. They take turns, each alone with client and origin. A ratio is
 * that of the medians of all rounds; behind it stands where it lies in 95 of 100 draws of rounds. A limit is
 * missed when all of that is below it: on a shared machine two proxies that are the same (`equal` and its
 * `twin`, the control) differ by more than a twentieth. Nobody reads a log meanwhile.
 */
export async function throughputReport(report: Report): Promise<void> {
  const schemes: Scheme[] = (await hasWrk()) ? ['http', 'https'] : ['http']
  report.figure(
    'load, in turns',
    `${(await hasWrk()) ? 'wrk' : 'the strict client, without TLS'}, ${CONNECTIONS} connections, ${ROUNDS} rounds of ${SECONDS} s each, medians`,
  )
  const [origin_port = 0] = await freePorts(1)
  const behind = await startBareProxy(origin_port, origin(origin_port))
  try {
    for (const count of [1, 10_000]) await compare(report, schemes, origin_port, count)
  } finally {
    await behind.close()
  }
}

async function compare(report: Report, schemes: Scheme[], origin_port: number, count: number): Promise<void> {
  const free = await freePorts(6)
  const ports = [0, 2, 4].map((at) => [free[at]!, free[at + 1]!] as const)
  const edge = await openTestEdge()
  const started: BareProxy[] = []
  try {
    await edge.ingress.ensure()
    await edge.ingress.apply({
      routes: Array.from({ length: count }, (_, index) => ({
        id: `dom_${index}`,
        app_id: `app_${index}`,
        hostnames: [`app-${index}.test`],
        servers: [{ address: '127.0.0.1', port: origin_port }],
      })),
    })
    const start = async (config: typeof equal, [plain, secure]: readonly [number, number]) => {
      const proxy = await startBareProxy(
        plain,
        config({ port: plain, tls_port: secure, origin_port, count }),
        count,
      )
      started.push(proxy)
      return reachedAt(proxy.container, plain, secure)
    }
    const own = reachedAt(edge.container.name, edge.edge.port, edge.https.port)
    const by_hand = {
      equal: await start(equal, ports[0]!),
      twin: await start(equal, ports[1]!),
      minimal: await start(minimal, ports[2]!),
    }
    for (const scheme of schemes) {
      const subjects = {
        edge: own(scheme),
        equal: by_hand.equal(scheme),
        twin: by_hand.twin(scheme),
        minimal: by_hand.minimal(scheme),
      }
      emit(
        report,
        `${scheme === 'https' ? 'TLS' : 'HTTP'}, ${count === 1 ? '1 route' : `${count} routes`}`,
        await takeTurns(subjects),
      )
    }
  } finally {
    await Promise.all(started.map((proxy) => proxy.close()))
    await edge.close()
  }
}

const reachedAt =
  (container: string, plain: number, secure: number) =>
  (scheme: Scheme): Subject => ({
    container,
    url: `${scheme}://127.0.0.1:${scheme === 'https' ? secure : plain}/`,
  })

async function takeTurns(subjects: Record<Name, Subject>): Promise<Record<Name, Sample[]>> {
  const found: Record<Name, Sample[]> = { edge: [], equal: [], twin: [], minimal: [] }
  const names = Object.keys(found) as Name[]
  const pids = Object.fromEntries(
    await Promise.all(
      names.map(async (name) => [name, await processesOf(subjects[name].container)] as const),
    ),
  )
  for (const name of names) await load(subjects[name].url)
  for (let round = 0; round < ROUNDS; round++) {
    const order = names.map((_, index) => names[(index + round) % names.length]!)
    for (const name of round % 2 ? order.toReversed() : order)
      found[name].push(await measure(subjects[name].url, pids[name] ?? []))
  }
  return found
}

const processesOf = async (container: string): Promise<number[]> =>
  (await docker.getContainer(container).top()).Processes.map((columns: string[]) => Number(columns[1]))

/** Above 1 the edge is the better one. */
function emit(report: Report, name: string, found: Record<Name, Sample[]>): void {
  for (const [subject, samples] of Object.entries(found)) {
    const middle = (value: keyof Sample) => median(samples.map((sample) => sample[value]))
    report.figure(
      `${name}: ${subject === 'edge' ? 'edge' : `${subject} by hand`}`,
      `${middle('per_second').toFixed(0)}/s, p99 ${middle('p99_ms').toFixed(1)} ms, ${middle('cpu_us').toFixed(1)} us`,
    )
  }
  for (const [value, what] of [
    ['per_second', 'throughput'],
    ['p99_ms', 'p99'],
    ['cpu_us', 'processor time'],
  ] as const) {
    const equally = compareSamples(found.edge, found.equal, value)
    const shown = `${equally.text} (control ${compareSamples(found.twin, found.equal, value).text}; to minimal ${compareSamples(found.edge, found.minimal, value).text})`
    if (value === 'cpu_us') report.figure(`${name}: ${what} to equal by hand`, shown)
    else report.check(`${name}: ${what} to equal by hand`, equally.most >= LEAST, shown)
  }
}

function compareSamples(own: Sample[], other: Sample[], value: keyof Sample): { most: number; text: string } {
  const ratioOf = (rounds: number[]) => {
    const [mine, theirs] = [own, other].map((samples) =>
      median(rounds.map((round) => samples[round]![value])),
    )
    return value === 'per_second' ? mine! / theirs! : theirs! / mine!
  }
  const rounds = own.map((_, round) => round)
  const draws = Array.from({ length: RESAMPLES }, () =>
    ratioOf(rounds.map(() => Math.floor(Math.random() * rounds.length))),
  ).sort((a, b) => a - b)
  const [least, most] = [0.025, 0.975].map((share) => draws[Math.floor(share * RESAMPLES)]!)
  return {
    most: most!,
    text: `${ratioOf(rounds).toFixed(3)} [${least!.toFixed(2)} to ${most!.toFixed(2)}]`,
  }
}

async function measure(url: string, pids: number[]): Promise<Sample> {
  const before = processorTime(pids)
  const { requests, ...sample } = await load(url)
  return { ...sample, cpu_us: (processorTime(pids) - before) / 1_000 / requests }
}

/** Of all threads, in nanoseconds. */
const processorTime = (pids: number[]): number =>
  pids
    .flatMap((pid) =>
      readdirSync(`/proc/${pid}/task`).map((thread) => `/proc/${pid}/task/${thread}/schedstat`),
    )
    .reduce((sum, path) => sum + Number(readFileSync(path, 'utf8').split(' ')[0]), 0)

async function load(url: string): Promise<Omit<Sample, 'cpu_us'> & { requests: number }> {
  if (!(await hasWrk())) {
    const result = await runLoad({
      host: '127.0.0.1',
      port: Number(new URL(url).port),
      host_header: 'app-0.test',
      connections: CONNECTIONS,
      until: new Promise((resolve) => setTimeout(resolve, SECONDS * 1_000)),
    })
    if (result.failed_total > 0) throw new Error(JSON.stringify(result.failed))
    return {
      per_second: (result.ok / result.duration_ms) * 1_000,
      p99_ms: percentile(result.latencies, 0.99),
      requests: result.ok,
    }
  }
  const { stdout } = await promisify(execFile)(
    'wrk',
    ['-t1', `-c${CONNECTIONS}`, `-d${SECONDS}s`, '--latency', '-H', 'Host: app-0.test', url],
    { timeout: 60_000 },
  )
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(stdout)
  const [, value = '', unit = ''] = /99%\s+([\d.]+)(us|ms|s)/.exec(stdout) ?? []
  return {
    per_second: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]),
    p99_ms: Number(value) * ({ us: 0.001, ms: 1, s: 1_000 }[unit] ?? Number.NaN),
    requests: Number(/(\d+) requests in/.exec(stdout)?.[1]),
  }
}

let wrk: Promise<boolean> | undefined
/** wrk prints its version and exits with 1. */
const hasWrk = () =>
  (wrk ??= promisify(execFile)('wrk', ['--version']).then(
    () => true,
    (error: { code?: unknown }) => error.code === 1,
  ))
