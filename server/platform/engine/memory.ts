import type { WatchedRoom } from '#server/kernel/watched-room'
import { EngineError } from './engine.ts'

/** Watches the memory that the engine's own process takes, while it fetches what strangers send. */
export type WatchMemory = (signal: AbortSignal) => WatchedRoom

/** For an engine whose process cannot be seen. */
export const unwatched: WatchMemory = (signal) => ({ signal, filled: () => false, stop: () => {} })

/** What is told of work that ended since the engine took too much. @param what such as "The build". */
export const tookTheMemory = (what: string): EngineError =>
  new EngineError(
    'image_refused',
    `${what} was ended: a registry sent so much about an image that the engine would have taken the memory of the server.`,
    'Use an image of another registry. If another image was fetched at the same time, try again.',
  )
