import type { WatchedRoom } from '#server/kernel/watched-room'
import type { Connection } from './connection.ts'
import { EngineError } from './engine.ts'

/** What a build says of itself, so that layers which the engine reads can be told to be its doing. */
export interface LayerMaker {
  /** Whether one of its steps, which has ended, began to write a layer at this moment. */
  madeAt(ms: number): boolean
  /** Whether the engine may be reading a layer of an earlier build for it. */
  usesCached(): boolean
}

/** Watches what the engine's own process reads of the layers of a build. */
export type WatchHoles = (signal: AbortSignal, build: LayerMaker) => WatchedHoles
export interface WatchedHoles extends WatchedRoom {
  /** Resolves once what was cut of layers is refused to the next build. */
  settled(): Promise<void>
}

/** For an engine whose process cannot be seen. */
export const unseenHoles: WatchHoles = (signal) => ({
  signal,
  filled: () => false,
  settled: async () => {},
  stop: () => {},
})

/** Holes of all layers of one build that the engine may read: it does so for two or three minutes. Further names of a file count as such. */
export const MOST_HOLES_BYTES = 16 * 1024 ** 3

export const madeHoles = (cause: unknown): EngineError =>
  new EngineError(
    'build_failed',
    `The build was ended: its steps wrote files that are larger than what is in them, or have many names, by more than ${MOST_HOLES_BYTES / 1024 ** 3} GiB together, and the engine reads each to its end.`,
    'Let no step make files that are mostly empty, such as `truncate` and images of disks, nor link large ones again and again; `useradd` with a large number needs `--no-log-init`. If another build did so at the same time, deploy again.',
    { cause },
  )

/** Removes a layer from the builder's cache, unless it is in use or has another name there. */
export const forgetLayer = (connection: Pick<Connection, 'call'>, layer: string): Promise<unknown> =>
  connection
    .call({
      method: 'POST',
      path: '/build/prune',
      query: { all: true, filters: JSON.stringify({ id: [layer] }) },
    })
    .catch(() => undefined)
