import { ApiError, engineUnavailable } from '#server/kernel/errors'
import { EngineError } from './engine.ts'

/** For callers who wait for an answer: an engine that is down is a 503, and what it refuses a 409. */
export async function askingEngine<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof EngineError && error.code === 'unavailable') throw engineUnavailable()
    if (error instanceof EngineError && error.code !== 'failed') throw new ApiError('CONFLICT', error.message)
    throw error
  }
}
