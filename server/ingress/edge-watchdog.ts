import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '#server/kernel/log'
import type { Ingress } from '#server/platform/ingress/ingress'
import { faultOfEdge } from '#server/platform/ingress/version'

export interface EdgeWatchdogOptions {
  ingress: Pick<Ingress, 'ensure' | 'status'>
  log: Log
  /** Gives the edge everything that should serve. */
  apply(): Promise<void>
  signal: AbortSignal
  every_ms?: number
}

const EVERY_MS = 2_000
const PATIENCE_MS = 60_000

/**
 * Resolves once the edge serves, or has not come for a minute: where another program has its ports
 * after a restart of the machine, backups, cron jobs and databases need none, and a deployment
 * fails with the reason.
 */
export async function edgeOrPatience(
  serves: Promise<void>,
  signal: AbortSignal,
  patience_ms = PATIENCE_MS,
): Promise<void> {
  const served = new AbortController()
  const patience = delay(patience_ms, undefined, {
    ref: false,
    signal: AbortSignal.any([signal, served.signal]),
  }).catch(() => undefined)
  await Promise.race([serves, patience])
  served.abort()
}

/**
 * Brings the edge up, trying until it works, and from then on looks whether it still runs: the
 * engine starts it again after a crash, but not after somebody stopped or removed it. Apps serve on
 * meanwhile from what the edge knows. Resolves once the edge serves for the first time.
 */
export function watchEdge({
  ingress,
  log,
  apply,
  signal,
  every_ms = EVERY_MS,
}: EdgeWatchdogOptions): Promise<void> {
  const pause = () => new Promise((resolve) => setTimeout(resolve, every_ms).unref())
  /** Told once, however often it is tried. */
  let told = ''
  const tellFault = async () => {
    const { version = '' } = (await ingress.status().catch(() => undefined)) ?? {}
    const fault = faultOfEdge(version)
    if (fault) log.warn(fault, { next: 'Pull the image of the edge anew and remove its container.' })
  }
  const bringUp = async (): Promise<boolean> => {
    try {
      await ingress.ensure(signal)
      await apply()
      if (!signal.aborted) log.info('The edge serves')
      await tellFault()
      told = ''
      return true
    } catch (error) {
      const reason = (error as Error).message
      if (reason !== told && !signal.aborted) log.warn('The edge cannot be brought up yet', { reason })
      told = reason
      return false
    }
  }
  const runs = () =>
    ingress.status().then(
      (status) => status.running,
      () => false,
    )

  return new Promise((resolve) => {
    void (async () => {
      let up = await bringUp()
      while (!signal.aborted) {
        if (up) resolve()
        await pause()
        if (signal.aborted) break
        if (!up || !(await runs())) up = await bringUp()
      }
      resolve()
    })()
  })
}
