import { ApiError } from './errors.ts'

export interface UserPoolOptions {
  /** Work that runs at the same time, of all users together. */
  at_once: number
  /** Of one user. */
  at_once_per_user: number
  /** Places of all that are for users who run nothing: a few with as much as they may run take no such place. */
  kept_for_first?: number
  /** Callers that may wait for their turn, of one user and of all together. */
  waiting_per_user: number
  waiting: number
  /** What is told to one too many. */
  refusal: string
}

interface Waiting {
  user: string
  begin(): void
}

/**
 * Runs work that costs as much as a user likes: a few at a time, users in turn, and no more waiting than will
 * come to its turn. Throws RATE_LIMITED for one too many.
 */
export function createUserPool(options: UserPoolOptions) {
  const running = new Map<string, number>()
  let total = 0
  const queue: Waiting[] = []
  const count = (user: string, by: number) => {
    total += by
    const now = (running.get(user) ?? 0) + by
    if (now > 0) running.set(user, now)
    else running.delete(user)
  }
  const mayRun = (user: string) => {
    const own = running.get(user) ?? 0
    return (
      own < options.at_once_per_user &&
      total < options.at_once - (own > 0 ? (options.kept_for_first ?? 0) : 0)
    )
  }
  /** Of those who may, whoever has least under way; of them, whoever came first. */
  const next = (): void => {
    const able = queue.filter(({ user }) => mayRun(user))
    if (able.length === 0) return
    const least = Math.min(...able.map(({ user }) => running.get(user) ?? 0))
    const chosen = able.find(({ user }) => (running.get(user) ?? 0) === least)!
    queue.splice(queue.indexOf(chosen), 1)
    count(chosen.user, 1)
    chosen.begin()
  }
  return {
    async run<T>(user: string, work: () => Promise<T>): Promise<T> {
      if (mayRun(user)) count(user, 1)
      else {
        const own = queue.filter((one) => one.user === user).length
        if (own >= options.waiting_per_user || queue.length >= options.waiting)
          throw new ApiError('RATE_LIMITED', options.refusal, undefined, 5)
        await new Promise<void>((resolve) => queue.push({ user, begin: resolve }))
      }
      try {
        return await work()
      } finally {
        count(user, -1)
        next()
      }
    },
  }
}
