import { ApiError, engineUnavailable } from '#server/kernel/errors'
import { EngineError } from './engine.ts'

/** What an engine that does not answer is to a caller: they can start this server's own, and not that of another. */
export const unavailableAnswer = ({ is_elsewhere, message, hint }: EngineError): ApiError =>
  is_elsewhere
    ? new ApiError('ENGINE_UNAVAILABLE', [message, hint].filter(Boolean).join(' '), undefined, 5)
    : engineUnavailable()

/** For callers who wait for an answer: an engine that is down is a 503, and what it refuses a 409. */
export async function askingEngine<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof EngineError && error.code === 'unavailable') throw unavailableAnswer(error)
    if (error instanceof EngineError && error.code !== 'failed') throw new ApiError('CONFLICT', error.message)
    throw error
  }
}
