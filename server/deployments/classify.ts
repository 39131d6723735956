import { DetectionError, withLookedFor } from '#server/builds/plan'
import { BaseDirectoryError } from '#server/platform/archive/source-folder'
import { ApiError } from '#server/kernel/errors'
import { failureOf } from '#server/kernel/failures'
import type { Verdict } from '#server/kernel/jobs/definition'
import { SecretUnreadableError } from '#server/kernel/secrets'
import { EngineError } from '#server/platform/engine/engine'
import { GitError } from '#server/platform/git/git'
import { IngressError } from '#server/platform/ingress/ingress'

const ENGINE_SYSTEM = new Set(['failed', 'conflict', 'not_found', 'timeout'])
const GIT_SYSTEM = new Set(['unreachable', 'failed'])

/** What an error means for the work: tell the user, try again, or wait for what is down. */
export function classify(error: unknown): Verdict {
  if (error instanceof EngineError) {
    const is_down = error.code === 'unavailable'
    const kind = ENGINE_SYSTEM.has(error.code) ? 'system' : 'user'
    return {
      kind: is_down ? 'wait' : kind,
      code: is_down ? 'engine_unavailable' : error.code,
      message: error.message,
      hint: error.hint ?? null,
      log: [...error.log],
    }
  }
  if (error instanceof GitError)
    return {
      kind: GIT_SYSTEM.has(error.code) ? 'system' : 'user',
      code: `git_${error.code}`,
      message: error.message,
      hint: error.hint,
      log: [],
    }
  if (error instanceof DetectionError) {
    return {
      kind: 'user',
      code: 'no_stack',
      message: error.message,
      hint: withLookedFor(error),
      log: [],
    }
  }
  if (error instanceof BaseDirectoryError)
    return { kind: 'user', code: 'no_base_directory', message: error.message, hint: error.hint, log: [] }
  if (error instanceof SecretUnreadableError)
    return { kind: 'user', code: 'secret_unreadable', message: error.message, hint: null, log: [] }
  if (error instanceof IngressError)
    return {
      kind: 'system',
      code: 'edge_unavailable',
      message: error.message,
      hint: 'Look at GET /readyz; the edge must run for a deployment to go live.',
      log: [],
    }
  if (error instanceof ApiError)
    return {
      kind: 'user',
      code: failureOf(error),
      message: error.message,
      hint: null,
      log: [],
    }
  if (error instanceof Error && error.name === 'ArchiveError')
    return { kind: 'user', code: 'bad_archive', message: error.message, hint: null, log: [] }
  const code = (error as { code?: unknown })?.code
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'SQLITE_FULL')
    return {
      kind: 'user',
      code: 'disk_full',
      message: 'The disk of the server is full.',
      hint: 'Free space, then deploy again.',
      log: [],
    }
  return {
    kind: 'system',
    code: 'internal',
    message: 'An internal fault stopped this step.',
    hint: 'Look at the log of the server, then try again.',
    log: [],
  }
}
