import { connect, type Socket } from 'node:net'
import { readResponse } from './http-response.ts'
import type { Report } from './report.ts'

/** What to send: the same GET over and over on keep-alive connections, each as fast as its answers come. */
export interface LoadOptions {
  host: string
  port: number
  /** The `Host` header: which app is asked. */
  host_header: string
  connections: number
  /**
   * The load ends when this settles; requests in flight are still waited for, so that `sent` is exactly `ok`
   * plus failed.
   */
  until: Promise<unknown>
  path?: string
  /** A request without a complete answer after so long has failed. Default 15 s. */
  timeout_ms?: number
  /** Sees every complete answer, e.g. to learn which release gave it. */
  observe?: (answer: { status: number; head: string; body: string }) => void
}

/**
 * Why requests failed. Other load generators send again silently when a kept-alive connection breaks; here
 * each one counts.
 */
export type FailureKind =
  | 'connect_refused'
  | 'connect_timeout'
  /** The connection broke under a request that was the first on it. */
  | 'closed_fresh'
  /** The connection broke under a request on a connection that had served others before. */
  | 'closed_reused'
  /** The answer began and never ended. */
  | 'partial'
  | 'timeout'
  | 'malformed'
  | `status_${number}`

export interface LoadResult {
  sent: number
  ok: number
  failed: Partial<Record<FailureKind, number>>
  failed_total: number
  duration_ms: number
  latencies: Latencies
}
/**
 * One entry per request with a complete answer: when it was sent (`performance.now()`) and how long it took.
 */
export interface Latencies {
  at_ms: number[]
  took_ms: number[]
}

/**
 * The latency below which the share `quantile` of the requests stayed; only those sent at times that `within`
 * takes.
 */
export function percentile(
  latencies: Latencies,
  quantile: number,
  within: (at_ms: number) => boolean = () => true,
): number {
  const chosen = Float64Array.from(
    latencies.took_ms.filter((_, index) => within(latencies.at_ms[index] ?? 0)),
  ).sort()
  return chosen[Math.min(chosen.length - 1, Math.floor(chosen.length * quantile))] ?? Number.NaN
}

/** Judges that no request of a load was lost, and that what was deployed meanwhile was served each time. */
export function judgeLoad(report: Report, result: LoadResult, wrong: readonly string[]): void {
  report.check(
    'failed requests: 0',
    result.failed_total === 0,
    `${result.failed_total} ${JSON.stringify(result.failed)}`,
  )
  report.check(
    'after each deployment its version serves',
    wrong.length === 0,
    wrong.length === 0 ? 'always' : wrong.join(', '),
  )
}

/** Runs the load and accounts for every single request. */
export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const started = performance.now()
  const run = new Run(options)
  void options.until.then(
    () => run.stop(),
    () => run.stop(),
  )
  await Promise.all(Array.from({ length: options.connections }, () => run.client()))
  return {
    ...run.result,
    failed_total: run.result.sent - run.result.ok,
    duration_ms: performance.now() - started,
  }
}

class Run {
  readonly result: Omit<LoadResult, 'failed_total' | 'duration_ms'> = {
    sent: 0,
    ok: 0,
    failed: {},
    latencies: { at_ms: [], took_ms: [] },
  }
  private readonly options: LoadOptions
  private readonly request: Buffer
  private stopped = false

  constructor(options: LoadOptions) {
    this.options = options
    this.request = Buffer.from(
      `GET ${options.path ?? '/'} HTTP/1.1\r\nHost: ${options.host_header}\r\nUser-Agent: strict-client\r\nAccept: */*\r\n\r\n`,
    )
  }

  stop(): void {
    this.stopped = true
  }

  private fail(kind: FailureKind): void {
    this.result.failed[kind] = (this.result.failed[kind] ?? 0) + 1
  }

  /** One client: connection after connection until the load ends. */
  async client(): Promise<void> {
    while (!this.stopped) {
      const fruitless = await this.connection()
      if (fruitless) await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  /** Lives as long as one connection; true when not one request on it was answered. */
  private connection(): Promise<boolean> {
    return new Promise((resolve) => {
      let received = Buffer.alloc(0)
      let sent_at = 0
      let waiting = false
      let connected = false
      let answered = 0
      const socket: Socket = connect(this.options.port, this.options.host)
      socket.setNoDelay(true)
      socket.setTimeout(this.options.timeout_ms ?? 15_000, () =>
        abandon(waiting ? 'timeout' : 'connect_timeout'),
      )

      const finish = () => {
        socket.removeAllListeners()
        socket.on('error', () => undefined)
        socket.destroy()
        resolve(answered === 0)
      }
      const abandon = (kind: FailureKind) => {
        if (!connected) this.result.sent++
        waiting = false
        this.fail(kind)
        finish()
      }
      const send = () => {
        if (this.stopped) return finish()
        received = Buffer.alloc(0)
        waiting = true
        this.result.sent++
        sent_at = performance.now()
        socket.write(this.request)
      }
      const complete = (status: number, close: boolean) => {
        waiting = false
        answered++
        this.result.latencies.at_ms.push(sent_at)
        this.result.latencies.took_ms.push(performance.now() - sent_at)
        if (status >= 200 && status < 300) this.result.ok++
        else this.fail(`status_${status}`)
        if (close) finish()
        else send()
      }
      socket.on('connect', () => {
        connected = true
        send()
      })
      socket.on('error', () => undefined)
      socket.on('data', (chunk) => {
        received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
        const response = readResponse(received)
        if (response === 'incomplete') return
        if (response === 'malformed' || !waiting) return abandon('malformed')
        this.options.observe?.(response)
        complete(response.status, response.close)
      })
      socket.on('close', () => {
        if (!connected) return abandon('connect_refused')
        if (!waiting) return finish()
        if (received.length > 0) return abandon('partial')
        abandon(answered > 0 ? 'closed_reused' : 'closed_fresh')
      })
    })
  }
}
