import { ApiError } from '#server/kernel/errors'
import { type FailureCode, failureOf } from '#server/kernel/failures'
import type { Verdict } from '#server/kernel/jobs/definition'
import { SecretUnreadableError } from '#server/kernel/secrets'
import { EngineError } from '#server/platform/engine/engine'

const SYSTEM = new Set(['failed', 'conflict', 'not_found', 'timeout'])
const user = (code: FailureCode, message: string, hint: string | null = null): Verdict => ({
  kind: 'user',
  code,
  message,
  hint,
  log: [],
})

/** What an error means for work on a database: tell the user, try again, or wait for the engine. */
export function classify(error: unknown): Verdict {
  if (error instanceof EngineError) {
    const { code, message, hint = null } = error
    if (code === 'unavailable') return { kind: 'wait', code: 'engine_unavailable', message, hint, log: [] }
    return { ...user(code, message, hint), ...(SYSTEM.has(code) ? { kind: 'system' as const } : {}) }
  }
  if (error instanceof SecretUnreadableError) return user('secret_unreadable', error.message)
  if (error instanceof ApiError) return user(failureOf(error), error.message)
  return {
    kind: 'system',
    code: 'internal',
    message: 'An internal fault stopped this work.',
    hint: 'Look at the log of the server, then try again.',
    log: [],
  }
}
