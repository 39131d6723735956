import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { EDGE_IMAGE } from '#server/platform/ingress/image'
import { createSelfSigned } from '#server/platform/ingress/self-signed'
import { docker, freePorts, openTestEdge } from '../test/platform/ingress/edge.ts'
import { percentile, runLoad } from './support/strict-client.ts'

const ROUNDS = 15
const SECONDS = 1
const CONNECTIONS = 50

interface Bare { container: string; close(): Promise<void> }
/** Processor time is the proxy's own, per request: it says the same on a busy machine, where requests per second do not. */
interface Sample { per_second: number; p99_ms: number; cpu_us: number }
interface Subject { container: string; url: string; samples: Sample[] }

/** What somebody writes who has one app and reads the manual, and what somebody writes who wants what the edge gives. */
const byHand = { minimal, equal }

/** Requests per second through the edge, divided by those through a bare proxy in front of the same origin, runs alternating. */
export async function throughputReport(): Promise<string[]> {
  const [origin_port = 0, ...ports] = await freePorts(5)
  const origin = await startBare(`frontend origin\n  bind 127.0.0.1:${origin_port}\n  http-request return status 200 content-type text/plain string "hello, world"\n`)
  const bares = await Promise.all(Object.values(byHand).map((write, index) => startBare(write(ports[index * 2] ?? 0, ports[index * 2 + 1] ?? 0, origin_port))))
  const lines = [`load by ${await hasWrk() ? 'wrk' : 'the strict client, without TLS'}, ${CONNECTIONS} connections, ${ROUNDS} alternating rounds of ${SECONDS} s each, medians`]
  try {
    for (const count of [1, 10_000]) {
      for (const scheme of await hasWrk() ? ['http', 'https'] : ['http']) {
        const at = (index: number) => ({ container: bares[index]?.container ?? '', url: `${scheme}://127.0.0.1:${ports[index * 2 + (scheme === 'https' ? 1 : 0)]}/`, samples: [] })
        lines.push(await compare(scheme, [at(0), at(1)], origin_port, count))
      }
    }
    return lines
  } finally {
    await Promise.all([...bares, origin].map((bare) => bare.close()))
  }
}

async function compare(scheme: string, bares: Subject[], origin_port: number, count: number): Promise<string> {
  const edge = await openTestEdge()
  try {
    await edge.ingress.ensure()
    await edge.ingress.apply({ routes: Array.from({ length: count }, (_, index) => ({ id: `dom_${index}`, app_id: `app_${index}`, hostnames: [`app-${index}.test`], servers: [{ address: '127.0.0.1', port: origin_port }] })) })
    const subjects: Subject[] = [...bares, { container: edge.container.name, url: `${scheme}://127.0.0.1:${scheme === 'https' ? edge.https.port : edge.edge.port}/`, samples: [] }]
    for (let round = 0; round < ROUNDS; round++) for (const subject of subjects) subject.samples.push(await measure(subject))
    const [low, equally, own] = subjects.map(({ samples }) => median(samples))
    if (!low || !equally || !own) throw new Error('nothing was measured')
    const show = ({ per_second, p99_ms, cpu_us }: Sample) => `${Math.round(per_second)}/s p99 ${p99_ms.toFixed(1)} ms ${cpu_us.toFixed(1)} us`
    const ratio = (base: Sample) => `${(own.per_second / base.per_second).toFixed(3)} (processor ${(base.cpu_us / own.cpu_us).toFixed(3)})`
    return `${scheme}, ${count} routes: edge ${show(own)}; minimal by hand ${show(low)}, ratio ${ratio(low)}; equal by hand ${show(equally)}, ratio ${ratio(equally)}`
  } finally {
    await edge.close()
  }
}

function median(samples: Sample[]): Sample {
  const middle = (values: number[]) => values.sort((left, right) => left - right)[Math.floor(values.length / 2)] ?? Number.NaN
  return { per_second: middle(samples.map((sample) => sample.per_second)), p99_ms: middle(samples.map((sample) => sample.p99_ms)), cpu_us: middle(samples.map((sample) => sample.cpu_us)) }
}

async function measure({ container, url }: Subject): Promise<Sample> {
  const pids = (await docker.getContainer(container).top()).Processes.map((columns: string[]) => Number(columns[1]))
  const before = processorTime(pids)
  const { requests, ...sample } = await load(url)
  return { ...sample, cpu_us: (processorTime(pids) - before) * 10_000 / requests }
}

/** In ticks of ten milliseconds. */
const processorTime = (pids: number[]): number => pids.reduce((sum, pid) => {
  const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /, '').split(' ').slice(11, 13)
  return sum + Number(user) + Number(system)
}, 0)

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

const TLS = 'ssl crt /bare/tls.pem alpn h2,http/1.1'

function minimal(port: number, tls_port: number, origin_port: number): string {
  return `frontend bare\n  bind :${port}\n  bind :${tls_port} ${TLS}\n  option forwardfor\n  default_backend app\nbackend app\n  server s1 127.0.0.1:${origin_port}\n`
}

/** A name to its app, a log, a request id, what a client says about itself taken away, and what the app is told about it. */
function equal(port: number, tls_port: number, origin_port: number): string {
  return [
    'ring log', '  format raw', '  maxlen 4096', '  size 8388608', 'frontend bare', `  bind :${port}`, `  bind :${tls_port} ${TLS}`, '  log ring@log len 4096 local0', '  option httplog',
    "  unique-id-format '%{+X}o%Ts-%pid-%rt'", '  acl app hdr(host) -i app-0.test', '  use_backend app if app', 'backend app', '  http-request del-header ^(x-forwarded-.*|forwarded|x-real-ip)$ -m reg',
    ...['X-Forwarded-For %[src]', 'X-Real-IP %[src]', 'X-Forwarded-Host %[req.hdr(host)]', 'X-Forwarded-Port %[dst_port]', 'X-Request-Id %[unique-id]'].map((header) => `  http-request set-header ${header}`),
    '  http-request set-header X-Forwarded-Proto https if { ssl_fc }', '  http-request set-header X-Forwarded-Proto http unless { ssl_fc }', `  server s1 127.0.0.1:${origin_port}`, '',
  ].join('\n')
}

/** HAProxy as its manual would configure it, in the same image as the edge. */
async function startBare(sections: string): Promise<Bare> {
  const folder = await mkdtemp(join(tmpdir(), 'portreeve-bare-'))
  await writeFile(join(folder, 'tls.pem'), createSelfSigned(['app-0.test'], new Date(), 90))
  await writeFile(join(folder, 'haproxy.cfg'), `global\n  fd-hard-limit 100000\ndefaults\n  mode http\n  timeout connect 2s\n  timeout client 60s\n  timeout server 60s\n${sections}`)
  const container = await docker.createContainer({
    Image: EDGE_IMAGE, User: 'root', Entrypoint: ['haproxy'], Cmd: ['-W', '-db', '-f', '/bare/haproxy.cfg'], Labels: { 'portreeve.bench': 'bare' },
    HostConfig: { NetworkMode: 'host', Binds: [`${folder}:/bare:ro`] },
  })
  await container.start()
  return {
    container: container.id,
    async close() {
      await container.remove({ force: true })
      await rm(folder, { recursive: true, force: true })
    },
  }
}
