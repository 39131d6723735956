import { get } from 'node:http'

/** Asks an app at a steady rate, each time on a new connection, and keeps account of every answer. */
export interface Prober {
  sent(): number
  /** Failed probes so far: when and why. */
  failures(): { at: string; why: string }[]
  stop(): Promise<void>
}

const TIMEOUT_MS = 10_000

export function startProber(port: number, host_header: string, every_ms = 50): Prober {
  const failures: { at: string; why: string }[] = []
  const open = new Set<Promise<void>>()
  let sent = 0
  const probe = () =>
    new Promise<void>((resolve) => {
      const at = new Date().toISOString()
      const fail = (why: string) => {
        failures.push({ at, why })
        resolve()
      }
      const request = get(
        { host: '127.0.0.1', port, agent: false, headers: { host: host_header } },
        (response) => {
          response
            .resume()
            .once('end', () =>
              response.statusCode === 200 ? resolve() : fail(`status ${response.statusCode}`),
            )
            .once('error', (error) => fail(error.message))
        },
      )
      request
        .setTimeout(TIMEOUT_MS, () => request.destroy(new Error('timeout')))
        .once('error', (error) => fail(error.message))
    })
  const timer = setInterval(() => {
    sent += 1
    const asked = probe()
    open.add(asked)
    void asked.then(() => open.delete(asked))
  }, every_ms)
  return {
    sent: () => sent,
    failures: () => failures,
    async stop() {
      clearInterval(timer)
      await Promise.all(open)
    },
  }
}
