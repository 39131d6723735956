import { Fatal, type StepContext } from '#server/kernel/jobs/definition'

/** A clone takes seconds; what takes longer waits for its host. */
const PATIENCE_MS = 30_000
/** Clones that go on for longer, of all projects: each is a process of git. */
const MOST = 32

interface SlowClone {
  project_id: string
  end(): void
}
type Step = Pick<StepContext<{ project_id: string }, unknown>, 'leavePlace' | 'signal' | 'payload'>

const crowdedOut = () =>
  new Fatal(
    'git_timeout',
    'The repository did not arrive in time, and others waited for theirs.',
    'Look at how fast its host answers, then deploy again.',
  )

/** Of the project with most of them, the one that goes on for longest. */
function worstOf(slow: Iterable<SlowClone>): SlowClone | undefined {
  const by_project = [...Map.groupBy(slow, ({ project_id }) => project_id).values()]
  return by_project.reduce((most, own) => (own.length > most.length ? own : most))[0]
}

/**
 * Fetches sources. Whoever owns a host of Git decides how long that takes, and may have many apps in many projects: so
 * a slow fetch gives its place among all jobs to others, and of too many slow ones the worst ends.
 */
export function createSlowClones({ patience_ms = PATIENCE_MS, most = MOST } = {}) {
  /** The oldest first. */
  const slow = new Set<SlowClone>()
  return async function fetchFor<T>(step: Step, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const crowded = new AbortController()
    const own: SlowClone = {
      project_id: step.payload.project_id,
      end: () => crowded.abort(crowdedOut()),
    }
    const timer = setTimeout(() => {
      step.leavePlace()
      slow.add(own)
      if (slow.size <= most) return
      const worst = worstOf(slow)!
      slow.delete(worst)
      worst.end()
    }, patience_ms)
    try {
      return await work(AbortSignal.any([step.signal, crowded.signal]))
    } catch (error) {
      throw crowded.signal.aborted && !step.signal.aborted ? crowded.signal.reason : error
    } finally {
      clearTimeout(timer)
      slow.delete(own)
    }
  }
}
export type SlowClones = ReturnType<typeof createSlowClones>
