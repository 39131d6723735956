import type { FakeBehaviour } from './behaviour.ts'
import { EngineError, type RunOnceSpec, type RunResult } from '../engine.ts'

/** Resolves after a time or, with true, when the signal aborts first. */
export function pause(duration_ms: number, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return Promise.resolve(true)
  return new Promise((resolve) => {
    const abort = () => {
      clearTimeout(timer)
      resolve(true)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort)
      resolve(false)
    }, duration_ms)
    signal.addEventListener('abort', abort, { once: true })
  })
}

/** Pretends to run a one-off command as the image's behaviour says. */
export async function runFake(
  behaviour: FakeBehaviour,
  spec: RunOnceSpec,
  signal: AbortSignal,
): Promise<RunResult> {
  const started = performance.now()
  if (behaviour.start === 'refused')
    throw new EngineError('start_failed', 'The command could not be started: executable file not found.')
  spec.onStarted?.()
  const outcome = behaviour.run?.(spec) ?? {}
  for (const text of outcome.lines ?? []) spec.onLog({ at: new Date().toISOString(), stream: 'stdout', text })
  const aborted = await pause(outcome.hang ? spec.timeout_ms : (outcome.duration_ms ?? 0), signal)
  if (aborted) throw new EngineError('aborted', 'The command was cancelled.')
  const timed_out = outcome.hang === true || outcome.timed_out === true
  return {
    exit_code: outcome.exit_code ?? (timed_out ? 137 : 0),
    oom_killed: outcome.oom_killed ?? false,
    timed_out,
    duration_ms: Math.round(performance.now() - started),
  }
}
