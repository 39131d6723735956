import { setTimeout as wait } from 'node:timers/promises'
import type { Engine } from '#server/platform/engine/engine'
import { type ProbeResult, waitUntilReady } from '../probe.ts'
import type { ReleaseService, ReleaseSettings, ServiceHealthCheck } from '../releases.ts'
import type { DeployContext } from '../work.ts'

const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 1000
/** A deployment waits at most so long for a health check. */
const MAX_WAIT_MS = 1_800_000

/** Runs the check of a service once, inside the instance; a sentence about what it saw. */
export async function checkHealth(
  engine: Pick<Engine, 'exec'>,
  instance_id: string,
  { command, timeout_ms }: ServiceHealthCheck,
  signal: AbortSignal,
): Promise<ProbeResult> {
  const over = AbortSignal.timeout(timeout_ms)
  try {
    const running = await engine.exec(instance_id, { command }, AbortSignal.any([signal, over]))
    running.stdin.end()
    running.stdout.resume()
    const { exit_code } = await running.done
    return { ready: exit_code === 0, last: `its health check exited with code ${exit_code}` }
  } catch {
    signal.throwIfAborted()
    return {
      ready: false,
      last: over.aborted ? 'its health check did not end in time' : 'its health check could not be run',
    }
  }
}

async function waitUntilHealthy(
  context: Pick<DeployContext, 'engine' | 'clock'>,
  instance_id: string,
  check: ServiceHealthCheck,
  { grace_s, signal }: { grace_s: number; signal: AbortSignal },
): Promise<ProbeResult> {
  const asked = check.start_period_ms + check.retries * (check.interval_ms + check.timeout_ms)
  const end = context.clock.monotonic_ms() + Math.min(Math.max(asked, grace_s * 1000), MAX_WAIT_MS)
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 1.5, MAX_PAUSE_MS)) {
    const result = await checkHealth(context.engine, instance_id, check, signal)
    if (result.ready || context.clock.monotonic_ms() >= end) return result
    await wait(pause, undefined, { signal })
  }
}

/**
 * Waits until an instance of a service may be used: healthy where the file has a check, and reachable where it
 * is public. One that has neither must stay up for a while, which is seen from outside.
 */
export async function waitForService(
  context: Pick<DeployContext, 'engine' | 'clock'>,
  {
    health_check,
    public_port,
    health_path,
  }: Pick<ReleaseService, 'public_port' | 'health_path'> & { health_check: ServiceHealthCheck | null },
  instance: { id: string; address?: string },
  { settings, grace_s, signal }: { settings: ReleaseSettings; grace_s: number; signal: AbortSignal },
): Promise<ProbeResult> {
  if (health_check) {
    const result = await waitUntilHealthy(context, instance.id, health_check, {
      grace_s: settings.health_check.grace_s,
      signal,
    })
    if (!result.ready) return result
  }
  if (public_port !== null)
    return waitUntilReady(
      instance.address ?? '',
      public_port,
      {
        ...settings.health_check,
        ...(health_path === null
          ? { type: 'tcp' as const, strict: false }
          : { type: 'http' as const, path: health_path, strict: true }),
      },
      signal,
      () => context.clock.monotonic_ms(),
    )
  if (!health_check) await wait(grace_s * 1000, undefined, { signal }).catch(() => undefined)
  return { ready: true, last: '' }
}
