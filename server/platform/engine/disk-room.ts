import { isReserveTouched } from '#server/kernel/disk-reserve'
import { watchRoom, type WatchedRoom } from '#server/kernel/watched-room'
import type { Connection } from './connection.ts'
import { EngineError } from './engine.ts'

/** Room on the disk of an engine on this machine; of another engine nothing is known, and nothing is ended. */
export interface DiskRoom {
  /** Whether nothing is left of the disk but what is kept for Portreeve. */
  isFull(): Promise<boolean>
  watch(signal: AbortSignal): WatchedRoom
}

/** @param is_touched whether nothing but the reserve is left on the disk of a folder. */
export function createDiskRoom(
  connection: Pick<Connection, 'call' | 'local'>,
  is_touched: (directory: string) => boolean = isReserveTouched,
): DiskRoom {
  let directory: string | undefined
  async function isFull(): Promise<boolean> {
    if (!connection.local) return false
    directory ??= (await connection.call<{ DockerRootDir?: string }>({ path: '/info' })).DockerRootDir ?? ''
    return directory !== '' && is_touched(directory)
  }
  return {
    isFull,
    // An engine that does not answer is told by the work itself.
    watch: (signal) => watchRoom(signal, isFull),
  }
}

/** What is told of work that the disk ended. @param what such as "The build". */
export const filledTheDisk = (what: string): EngineError =>
  new EngineError(
    'disk_full',
    `${what} was ended: what is left of the disk of the server is kept for Portreeve itself.`,
    'Let it write less, or free space on the server, then try again.',
  )
