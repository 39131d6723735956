import { isReserveTouched } from '#server/kernel/disk-reserve'
import type { Connection } from './connection.ts'
import { EngineError } from './engine.ts'

/** Work that is watched for what it leaves of the disk. */
export interface WatchedRoom {
  /** Aborts when the caller's signal does, and once nothing is left but the reserve. */
  readonly signal: AbortSignal
  /** Whether the disk ended it. */
  filled(): boolean
  stop(): void
}

/** Room on the disk of an engine on this machine; of another engine nothing is known, and nothing is ended. */
export interface DiskRoom {
  /** Whether nothing is left of the disk but what is kept for Portreeve. */
  isFull(): Promise<boolean>
  watch(signal: AbortSignal): WatchedRoom
}

/** A fast disk takes a quarter of the reserve in the meantime. */
const LOOK_MS = 200

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
    watch(signal) {
      const full = new AbortController()
      let is_looking = false
      const look = async (): Promise<void> => {
        if (is_looking) return
        is_looking = true
        // An engine that does not answer is told by the work itself.
        if (await isFull().catch(() => false)) full.abort()
        is_looking = false
      }
      const timer = setInterval(() => void look(), LOOK_MS)
      return {
        signal: AbortSignal.any([signal, full.signal]),
        filled: () => full.signal.aborted && !signal.aborted,
        stop: () => clearInterval(timer),
      }
    },
  }
}

/** What is told of work that the disk ended. @param what such as "The build". */
export const filledTheDisk = (what: string): EngineError =>
  new EngineError(
    'disk_full',
    `${what} was ended: what is left of the disk of the server is kept for Portreeve itself.`,
    'Let it write less, or free space on the server, then try again.',
  )
