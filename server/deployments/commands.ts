import { ApiError } from '#server/kernel/errors'
import { differenceOf, type Share, sumOf } from '#server/kernel/shares'
import { createUserPool } from '#server/kernel/user-pool'

/** Seconds after which somebody asks again whose command had no room. */
const AGAIN_S = 5

/**
 * One-off commands under way: each has what an instance of its app may use, and counts toward the quotas of
 * its project until it ends.
 * @param requireBeside Throws 409 when a project has no room for so much beside all that it may use already.
 */
export function createCommands(requireBeside: (project_id: string, extra: Share) => void) {
  const under_way = new Map<string, Set<Share>>()
  const shareIn = (project_id: string): Share => sumOf([...(under_way.get(project_id) ?? [])])
  /** Throws 409 when there is no room for a command even once all others have ended. */
  const requireAlone = (project_id: string, alone: Share): void =>
    requireBeside(project_id, differenceOf(alone, shareIn(project_id)))
  /** Whether other commands take the room of one. */
  const isCrowded = (project_id: string, share: Share): boolean =>
    under_way.has(project_id) && refuses(() => requireBeside(project_id, share))
  return {
    shareIn,
    /** Whether a command has room once others have ended, but not before. */
    hasToWait: (project_id: string, share: Share, alone: Share): boolean =>
      isCrowded(project_id, share) && !refuses(() => requireAlone(project_id, alone)),
    /**
     * Runs a command, or throws: CONFLICT when the quotas have no room for it, RATE_LIMITED when other
     * commands take that room.
     * @param alone what of the share needs room when no other command runs in the project.
     */
    async run<T>(
      project_id: string,
      { memory_bytes, cpus }: Share,
      alone: Share,
      work: () => Promise<T>,
    ): Promise<T> {
      if (memory_bytes === 0 && cpus === 0) return work()
      const share = { memory_bytes, cpus }
      requireAlone(project_id, alone)
      if (isCrowded(project_id, share))
        throw new ApiError(
          'RATE_LIMITED',
          'Commands that run in the project take what its quotas have room for. Wait until one has ended, then try again.',
          undefined,
          AGAIN_S,
        )
      const held = under_way.get(project_id) ?? new Set()
      under_way.set(project_id, held.add(share))
      try {
        return await work()
      } finally {
        held.delete(share)
        if (held.size === 0) under_way.delete(project_id)
      }
    },
  }
}

export type Commands = ReturnType<typeof createCommands>

/** Whether a check throws the refusal of a request. */
function refuses(check: () => unknown): boolean {
  try {
    check()
    return false
  } catch (error) {
    if (error instanceof ApiError) return true
    throw error
  }
}

/** Commands that somebody waits for: at once on the installation, of one user and in one project. */
const MOST = 64
const MOST_OF_USER = 4
const MOST_IN_PROJECT = 8
/** Of these, for users who run none. */
const KEPT_FOR_FIRST = 16

/** Bounds how many commands people run at the same time, whatever quotas there are. */
export function createAskedCommands() {
  const limits = {
    at_once: MOST,
    waiting_per_user: 0,
    waiting: 0,
    refusal: `${MOST_OF_USER} commands of one user, ${MOST_IN_PROJECT} in one project and ${MOST} on the server run at once. Wait until one has ended, then try again.`,
  }
  const users = createUserPool({
    ...limits,
    at_once_per_user: MOST_OF_USER,
    kept_for_first: KEPT_FOR_FIRST,
  })
  const projects = createUserPool({ ...limits, at_once_per_user: MOST_IN_PROJECT })
  return {
    run: <T>(user_id: string, project_id: string, work: () => Promise<T>): Promise<T> =>
      users.run(user_id, () => projects.run(project_id, work)),
  }
}
