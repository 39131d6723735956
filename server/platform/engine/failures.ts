import { EngineError } from './engine.ts'
import { clampMessage, endsOf } from './messages.ts'

const START_HINT =
  'Check that the engine runs and that Portreeve may use its socket (DOCKER_HOST), then try again.'
const LOST = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOTCONN',
  'ECONNABORTED',
])

/** The engine does not answer, or stopped in the middle of an answer. */
export const unavailable = (cause?: unknown): EngineError =>
  new EngineError('unavailable', 'The container engine does not answer.', START_HINT, { cause })

const TOO_LARGE = 'The container engine sent an answer that is too large.'
export const tooLarge = (): EngineError => new EngineError('failed', TOO_LARGE)
/** Whether an answer was not read to its end, since it is longer than any that is asked for. */
export const isTooLarge = (error: unknown): boolean =>
  error instanceof EngineError && error.message === TOO_LARGE
export const unreadable = (cause: unknown): EngineError =>
  new EngineError('failed', 'The container engine sent an answer that cannot be read.', undefined, { cause })

/** The caller's signal ended what was going on. */
export const aborted = (what = 'The operation'): EngineError =>
  new EngineError('aborted', `${what} was cancelled.`)

/** Whether trying once more can help: the connection broke, nothing was said about the request. */
export const isConnectionLoss = (error: unknown): boolean =>
  error instanceof Error &&
  (LOST.has((error as NodeJS.ErrnoException).code ?? '') ||
    error.message === 'socket hang up' ||
    error.message === 'aborted')

/** Words of the engine without the paths of its own storage, which mean nothing to a user. */
export function engineWords(text: string): string {
  return clampMessage(
    endsOf(text)
      .replace(/\/var\/lib\/(docker|containerd)\/\S+/g, '…')
      .replace(/^Error response from daemon: /, ''),
  )
}

/** Turns whatever a call threw into an EngineError. */
export function toEngineError(error: unknown): EngineError {
  if (error instanceof EngineError) return error
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  if (code === 'EACCES' || code === 'EPERM') {
    return new EngineError(
      'unavailable',
      'Portreeve is not allowed to use the socket of the container engine.',
      'Run it as root or as a member of the docker group.',
      { cause: error },
    )
  }
  if (isConnectionLoss(error)) return unavailable(error)
  if (code === 'ENOSPC') return diskFull(error)
  return new EngineError(
    'failed',
    `The container engine could not do this: ${engineWords(error instanceof Error ? error.message : String(error))}`,
    undefined,
    { cause: error },
  )
}

export const diskFull = (cause?: unknown): EngineError =>
  new EngineError(
    'disk_full',
    'The disk of the container engine is full.',
    'Remove old images or enlarge the disk, then try again.',
    { cause },
  )

/** Whether the engine says that a disk has no room left. */
export const saysDiskFull = (text: string): boolean =>
  /no space left on device|disk quota exceeded/i.test(text)

/** What the engine said with an error status, word for word; the cause of the error that is shown. */
export class EngineAnswer extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.name = 'EngineAnswer'
    this.status = status
  }
}

/** An answer with an error status, as an error of ours. */
export function statusError(status: number, message: string): EngineError {
  const cause = new EngineAnswer(status, message)
  if (saysDiskFull(message)) return diskFull(cause)
  const words = engineWords(message) || `status ${status}`
  if (status === 404)
    return new EngineError('not_found', `The container engine does not know it: ${words}`, undefined, {
      cause,
    })
  if (status === 409)
    return new EngineError('conflict', `The container engine cannot do this now: ${words}`, undefined, {
      cause,
    })
  return new EngineError('failed', `The container engine could not do this: ${words}`, undefined, {
    cause,
  })
}
