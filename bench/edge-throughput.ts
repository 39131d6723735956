import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { EDGE_IMAGE } from '#server/platform/ingress/image'
import { docker, freePort, openTestEdge } from '../test/platform/ingress/edge.ts'
import { percentile, runLoad } from './support/strict-client.ts'

const ROUNDS = 5
const SECONDS = 3
const CONNECTIONS = 50

interface Bare { port: number; close(): Promise<void> }
interface Sample { per_second: number; p99_ms: number }

/** Requests per second through the edge, divided by those through a bare proxy in front of the same origin, runs alternating. */
export async function throughputReport(): Promise<string[]> {
  const origin_port = await freePort()
  const origin = await startBare(origin_port, (port) => `frontend origin\n  bind 127.0.0.1:${port}\n  http-request return status 200 content-type text/plain string "hello, world"\n`)
  const bare = await startBare(await freePort(), (port) => `frontend bare\n  bind :${port}\n  option forwardfor\n  default_backend app\nbackend app\n  server s1 127.0.0.1:${origin_port}\n`)
  const lines = [`load by ${await hasWrk() ? 'wrk' : 'the strict client'}, ${CONNECTIONS} connections, ${ROUNDS} rounds of ${SECONDS} s each, medians`]
  try {
    for (const count of [1, 10_000]) lines.push(await compare(bare.port, origin_port, count))
    return lines
  } finally {
    await bare.close()
    await origin.close()
  }
}

async function compare(bare_port: number, origin_port: number, count: number): Promise<string> {
  const edge = await openTestEdge()
  try {
    await edge.ingress.ensure()
    await edge.ingress.apply({ routes: Array.from({ length: count }, (_, index) => ({ id: `app_${index}`, hostnames: [`app-${index}.test`], servers: [{ address: '127.0.0.1', port: origin_port }] })) })
    const [through_bare, through_edge]: [Sample[], Sample[]] = [[], []]
    for (let round = 0; round < ROUNDS; round++) {
      through_bare.push(await measure(bare_port))
      through_edge.push(await measure(edge.edge.port))
    }
    const [a, b] = [median(through_bare), median(through_edge)]
    return `${count} routes: bare ${Math.round(a.per_second)}/s p99 ${a.p99_ms.toFixed(1)} ms, edge ${Math.round(b.per_second)}/s p99 ${b.p99_ms.toFixed(1)} ms, ratio ${(b.per_second / a.per_second).toFixed(3)}`
  } finally {
    await edge.close()
  }
}

function median(samples: Sample[]): Sample {
  const middle = (values: number[]) => values.sort((left, right) => left - right)[Math.floor(values.length / 2)] ?? Number.NaN
  return { per_second: middle(samples.map((sample) => sample.per_second)), p99_ms: middle(samples.map((sample) => sample.p99_ms)) }
}

async function measure(port: number): Promise<Sample> {
  if (!(await hasWrk())) {
    const result = await runLoad({ host: '127.0.0.1', port, host_header: 'app-0.test', connections: CONNECTIONS, until: new Promise((resolve) => setTimeout(resolve, SECONDS * 1_000)) })
    if (result.failed_total > 0) throw new Error(JSON.stringify(result.failed))
    return { per_second: result.ok / result.duration_ms * 1_000, p99_ms: percentile(result.latencies, 0.99) }
  }
  const { stdout } = await promisify(execFile)('wrk', ['-t1', `-c${CONNECTIONS}`, `-d${SECONDS}s`, '--latency', '-H', 'Host: app-0.test', `http://127.0.0.1:${port}/`], { timeout: 60_000 })
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(stdout)
  const [, value = '', unit = ''] = /99%\s+([\d.]+)(us|ms|s)/.exec(stdout) ?? []
  return { per_second: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]), p99_ms: Number(value) * ({ us: 0.001, ms: 1, s: 1_000 }[unit] ?? Number.NaN) }
}

let wrk: Promise<boolean> | undefined
/** wrk prints its version and exits with 1. */
const hasWrk = () => (wrk ??= promisify(execFile)('wrk', ['--version']).then(() => true, (error: { code?: unknown }) => error.code === 1))

/** HAProxy as its manual would configure it, in the same image as the edge. */
async function startBare(port: number, sections: (port: number) => string): Promise<Bare> {
  const folder = await mkdtemp(join(tmpdir(), 'portreeve-bare-'))
  await writeFile(join(folder, 'haproxy.cfg'), `global\n  fd-hard-limit 100000\ndefaults\n  mode http\n  timeout connect 2s\n  timeout client 60s\n  timeout server 60s\n${sections(port)}`)
  const container = await docker.createContainer({
    Image: EDGE_IMAGE, User: 'root', Entrypoint: ['haproxy'], Cmd: ['-W', '-db', '-f', '/bare/haproxy.cfg'], Labels: { 'portreeve.bench': 'bare' },
    HostConfig: { NetworkMode: 'host', Binds: [`${folder}:/bare:ro`] },
  })
  await container.start()
  return {
    port,
    async close() {
      await container.remove({ force: true })
      await rm(folder, { recursive: true, force: true })
    },
  }
}
