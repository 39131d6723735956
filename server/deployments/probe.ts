import { get } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { probeTcp } from '#server/platform/tcp'
import type { ReleaseSettings } from './releases.ts'

type HealthCheck = ReleaseSettings['health_check']
/**
 * Good answers in a row that are needed before a path that the user named counts as ready: one could be luck.
 */
const STRICT_STREAK = 3
const FIRST_INTERVAL_MS = 10

/**
 * Status of a GET, or undefined without one in time, also where a byte of it comes now and then; and when
 * `signal` aborts first.
 */
export function probeHttp(
  address: string,
  port: number,
  path: string,
  timeout_ms: number,
  signal?: AbortSignal,
): Promise<number | undefined> {
  const limit = AbortSignal.timeout(timeout_ms)
  return new Promise((resolve) => {
    const request = get(
      {
        host: address,
        port,
        path,
        agent: false,
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
        headers: { 'user-agent': 'Portreeve-Probe', accept: '*/*', host: 'localhost' },
      },
      (response) => {
        response.destroy()
        resolve(response.statusCode)
      },
    )
    request.once('error', () => resolve(undefined))
    // An answer after which another protocol is spoken comes to its end without an error.
    request.once('close', () => resolve(undefined))
  })
}

export interface ProbeResult {
  ready: boolean /** What the last probe saw, for the failure's sentence. */
  last: string
}

async function once(
  address: string,
  port: number,
  check: HealthCheck,
  signal: AbortSignal,
): Promise<ProbeResult> {
  // Asked for no address, the system connects to this very machine.
  if (address === '') return { ready: false, last: 'it has no address' }
  if (check.type === 'tcp')
    return (await probeTcp(address, port, check.timeout_ms, signal))
      ? { ready: true, last: 'connected' }
      : { ready: false, last: 'nothing listens' }
  const status = await probeHttp(address, port, check.path, check.timeout_ms, signal)
  if (status === undefined)
    return {
      ready: false,
      last: (await probeTcp(address, port, check.timeout_ms, signal))
        ? 'no answer in time'
        : 'nothing listens',
    }
  return { ready: status < (check.strict ? 400 : 500), last: `it answered ${status}` }
}

/**
 * Probes from outside of the container until it is ready or the grace is over. Asks often at first, so that a
 * fast app goes live fast.
 * Rejects as soon as `signal` aborts, also while an answer is waited for.
 */
export async function waitUntilReady(
  address: string,
  port: number,
  check: HealthCheck,
  signal: AbortSignal,
  now_ms: () => number,
): Promise<ProbeResult> {
  const needed = check.type === 'http' && check.strict ? STRICT_STREAK : 1
  const end = now_ms() + check.grace_s * 1000
  let result: ProbeResult = { ready: false, last: 'nothing listens' }
  for (
    let streak = 0, interval = FIRST_INTERVAL_MS;
    now_ms() < end;
    interval = Math.min(check.interval_ms, interval * 1.2)
  ) {
    signal.throwIfAborted()
    result = await once(address, port, check, signal)
    signal.throwIfAborted()
    streak = result.ready ? streak + 1 : 0
    if (streak >= needed) return result
    await delay(result.ready ? FIRST_INTERVAL_MS : interval, undefined, { signal })
  }
  return { ...result, ready: false }
}

const USUAL_PORTS = [80, 3000, 3001, 4000, 5000, 8000, 8080, 8081, 8888, 9000]

/** Another port that the app listens on, to tell a user who set the wrong one. */
export async function findOpenPort(
  address: string,
  candidates: readonly number[],
  timeout_ms = 500,
): Promise<number | undefined> {
  const ports = [...new Set([...candidates, ...USUAL_PORTS])]
  const open = await Promise.all(ports.map((port) => probeTcp(address, port, timeout_ms)))
  return ports[open.indexOf(true)]
}
