import { createRegister, type Register } from '#server/kernel/register'
import { type BuildGroup, buildGroup, type CgroupLayout, type GroupLimits } from '../cgroups.ts'

/** One running build's share of the cap. */
export interface CappedBuild {
  /** Whether any build step was seen inside the capped group since this build began. */
  seen(): boolean
  /**
   * What memory did: a process was killed, the limit was touched, or neither; `unknown` when other builds
   * ran, whose traces cannot be told from this one's.
   */
  memory(): 'killed' | 'limit_hit' | 'fine' | 'unknown'
  end(): void
}

const POLL_MS = 50
/** Use grows between the look and the limit. */
const ROOM_BYTES = 16 * 1024 ** 2

/**
 * Caps BuildKit through the group in which the engine runs its build steps, since the engine ignores limits
 * and group names that are sent with such a build. All builds share the group: it may use the sum of what the
 * running builds may use, and each step is held to one build's share. Builds of other
 * processes on this engine count as well.
 */
export function createBuildCap(
  layout: CgroupLayout,
  register: Register<GroupLimits> = createRegister('/run/portreeve/builds'),
) {
  const group = buildGroup(layout)
  const active = new Map<GroupLimits, () => void>()
  const all = () => [...active.keys(), ...register.others()]
  const kills_of = new Map<string, number>()
  let steps = 0
  let kills = 0
  let timer: NodeJS.Timeout | undefined

  /** What the group held before the builds that run now. */
  let held = 0

  const applyToGroup = () => {
    const builds = all()
    if (builds.length === 0) return group.limitAll(undefined)
    const sum = together(builds)
    const limitWith = (more: number) => group.limitAll({ ...sum, memory_bytes: sum.memory_bytes + more })
    try {
      limitWith(held)
    } catch (error) {
      // The kernel refuses a limit below what is in use and cannot be taken back.
      if ((error as NodeJS.ErrnoException).code !== 'EBUSY') throw error
      held = group.held(true) + ROOM_BYTES
      limitWith(held)
    }
  }

  function poll(): void {
    for (const step of group.steps()) {
      const before = kills_of.get(step)
      if (before === undefined) {
        steps += 1
        const builds = all()
        if (group.per_step || builds.length > 1) limitStep(group, step, builds)
      }
      const now = group.stepKills(step) ?? before ?? 0
      kills += Math.max(0, now - (before ?? 0))
      kills_of.set(step, now)
    }
  }

  function end(limits: GroupLimits): void {
    const leave = active.get(limits)
    if (!leave) return
    leave()
    active.delete(limits)
    ignoring(applyToGroup) // Use may still be above the lower limit; the next build sets it again.
    if (active.size > 0) return
    clearInterval(timer)
    timer = undefined
    kills_of.clear()
  }

  return {
    /** Throws when the groups cannot be set from here. */
    begin(asked: GroupLimits): CappedBuild {
      const limits = { ...asked }
      const is_first = all().length === 0
      active.set(limits, register.enter(limits))
      try {
        group.prepare()
        if (is_first) held = group.held()
        applyToGroup()
      } catch (error) {
        end(limits)
        throw error
      }
      timer ??= setInterval(poll, POLL_MS)
      poll()
      const counters = (): Counters => ({
        steps,
        kills,
        group_kills: group.groupKills(),
        hits: group.limitHits(),
        company: all().length > 1,
      })
      if (all().length === 1) group.resetPeak()
      return watchBuild({ poll, end: () => end(limits), first: counters(), now: counters })
    },
  }
}
export type BuildCap = ReturnType<typeof createBuildCap>

/** What all running builds may use together. */
function together(all: readonly GroupLimits[]): GroupLimits {
  return {
    cpus: all.reduce((sum, { cpus }) => sum + cpus, 0),
    memory_bytes: all.reduce((sum, { memory_bytes }) => sum + memory_bytes, 0),
  }
}

/** Holds a step to the largest share: to which build it belongs cannot be told. */
function limitStep(group: BuildGroup, step: string, all: readonly GroupLimits[]): void {
  const share = {
    cpus: Math.max(...all.map(({ cpus }) => cpus)),
    memory_bytes: Math.max(...all.map(({ memory_bytes }) => memory_bytes)),
  }
  ignoring(() => group.limitStep(step, share)) // The step may have ended already.
}

function ignoring(work: () => void): void {
  try {
    work()
  } catch {
    // The caller says why that is fine.
  }
}

interface Counters {
  steps: number
  kills: number
  group_kills: number
  hits: number /** Whether other builds ran. */
  company: boolean
}

/** What happened since a build began, from the counters then and now. */
function watchBuild({
  poll,
  end,
  first,
  now,
}: {
  poll(): void
  end(): void
  first: Counters
  now(): Counters
}): CappedBuild {
  return {
    end,
    seen() {
      poll()
      return now().steps > first.steps
    },
    memory() {
      poll()
      const counters = now()
      if (counters.kills > first.kills || counters.group_kills > first.group_kills) return 'killed'
      if (counters.hits > first.hits) return 'limit_hit'
      return first.company || counters.company ? 'unknown' : 'fine'
    },
  }
}
