import { ApiError } from '#server/kernel/errors'
import { type FailureCode, failureOf } from '#server/kernel/failures'
import { Fatal, type Verdict } from '#server/kernel/jobs/definition'
import { SecretUnreadableError } from '#server/kernel/secrets'
import { EngineError } from '#server/platform/engine/engine'

/** What an error means for the work on a preview. Deployments and restores judge their own. */
export function classify(error: unknown): Verdict {
  const verdict = (kind: Verdict['kind'], code: FailureCode, hint: string | null = null): Verdict => ({
    kind,
    code,
    message: error instanceof Error ? error.message : 'The work on the preview failed.',
    hint,
    log: [],
  })
  if (error instanceof Fatal) return verdict('user', error.code, error.hint)
  if (error instanceof ApiError)
    return error.status >= 500 ? verdict('wait', failureOf(error)) : verdict('user', failureOf(error))
  if (error instanceof SecretUnreadableError) return verdict('user', 'secret_unreadable')
  if (error instanceof EngineError)
    return error.code === 'unavailable'
      ? verdict('wait', 'engine_unavailable', error.hint ?? null)
      : verdict('system', error.code, error.hint ?? null)
  return { ...verdict('system', 'internal'), message: 'The work on the preview failed.' }
}
