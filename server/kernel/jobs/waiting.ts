import type { Pool } from './pool.ts'
import type { Run } from './run-context.ts'

/** Waits for what others may keep from coming for as long as they like: a job that does so holds no place. */
export async function whileWaiting<T>(run: Run, coming: Promise<T>): Promise<T> {
  run.is_waiting = true
  run.around.waits()
  try {
    return await coming
  } finally {
    run.is_waiting = false
  }
}

/** A pool in which a job waits without its place among all jobs. */
export const waitingPool = (run: Run, name: string): Pick<Pool, 'acquire'> => ({
  acquire: (...asked) => whileWaiting(run, run.around.pools.get(name)!.acquire(...asked)),
})

/** Leaves the places of a job whose step goes on, and does nothing but wait from now on. */
export function beginWaiting(run: Run, leave: () => void): void {
  leave()
  run.is_waiting = true
  run.around.waits()
}
