import { Fatal } from './definition.ts'
import type { Pool } from './pool.ts'

/** How one attempt of a step or of its undo ended. */
export type AttemptEnd = { kind: 'done' } | { kind: 'interrupted' } | { kind: 'failed'; error: unknown }

export interface AttemptLimits {
  /** For the sentence of a timeout. */
  name: string
  timeout_ms: number
  /** Waiting for a place in it does not count as time of the step. */
  pool?: Pick<Pool, 'acquire'> | undefined
  /** Whose place it is; null for the platform's own. */
  project_id: string | null
  /** Ends the attempt from outside: cancel, or the end of the process. */
  stop: AbortSignal
}

/** How long work may take to notice that it was stopped before the job goes on without it. */
const GRACE_MS = 10_000
/** The process has ten seconds for its end: work that listens to nobody, since a host hangs, must leave some to the rest. */
const LAST_GRACE_MS = 4_000
/** Why work ends with its process, to be gone on with by the next one. */
export const SUSPENDED = Symbol('suspended')

/**
 * Settles with the work; when the signal aborts and the work does not react in time, rejects and leaves it
 * behind.
 */
function settle(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined
    const abandon = () => {
      const grace_ms = signal.reason === SUSPENDED ? LAST_GRACE_MS : GRACE_MS
      timer = setTimeout(() => reject(new Error('The work did not end when it was told to.')), grace_ms)
    }
    signal.addEventListener('abort', abandon, { once: true })
    void work.then(resolve, reject).finally(() => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abandon)
    })
  })
}

/**
 * Runs work once, with a place in its pool, a time limit, and a signal that tells it to stop.
 * @param work may leave its place before it ends.
 */
export async function attempt(
  work: (signal: AbortSignal, leavePlace: () => void) => Promise<void>,
  limits: AttemptLimits,
): Promise<AttemptEnd> {
  const { stop, pool, timeout_ms } = limits
  if (stop.aborted) return { kind: 'interrupted' }
  const place = await pool?.acquire(stop, limits.project_id).catch(() => 'interrupted' as const)
  if (place === 'interrupted') return { kind: 'interrupted' }
  const controller = new AbortController()
  const forward = () => controller.abort(stop.reason)
  stop.addEventListener('abort', forward, { once: true })
  let timed_out = false
  const timer = setTimeout(() => {
    timed_out = true
    controller.abort(new Error('The time limit is over.'))
  }, timeout_ms)
  try {
    await settle((async () => work(controller.signal, () => place?.()))(), controller.signal)
    return { kind: 'done' }
  } catch (error) {
    if (stop.aborted) return { kind: 'interrupted' }
    if (!timed_out) return { kind: 'failed', error }
    return {
      kind: 'failed',
      error: new Fatal(
        'timeout',
        `The step «${limits.name}» took longer than ${Math.round(timeout_ms / 1000)} seconds and was stopped.`,
        null,
        [],
        { cause: error },
      ),
    }
  } finally {
    clearTimeout(timer)
    stop.removeEventListener('abort', forward)
    place?.()
  }
}
