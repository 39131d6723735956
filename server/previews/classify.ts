import { ApiError } from '#server/kernel/errors'
import { Fatal, type Verdict } from '#server/kernel/jobs/definition'
import { SecretUnreadableError } from '#server/kernel/secrets'
import { EngineError } from '#server/platform/engine/engine'

/** What an error means for the work on a preview. Deployments and restores judge their own. */
export function classify(error: unknown): Verdict {
  const verdict = (kind: Verdict['kind'], code: string, hint: string | null = null): Verdict => ({
    kind,
    code,
    message: error instanceof Error ? error.message : 'The work on the preview failed.',
    hint,
    log: [],
  })
  if (error instanceof Fatal) return verdict('user', error.code, error.hint)
  if (error instanceof ApiError)
    return error.status >= 500
      ? verdict('wait', error.code.toLowerCase())
      : verdict('user', error.code.toLowerCase())
  if (error instanceof SecretUnreadableError) return verdict('user', 'secret_unreadable')
  if (error instanceof EngineError)
    return verdict(error.code === 'unavailable' ? 'wait' : 'system', error.code, error.hint ?? null)
  return { ...verdict('system', 'internal'), message: 'The work on the preview failed.' }
}
