import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface GroupLimits {
  cpus: number
  memory_bytes: number
}

/** How the engine groups processes; from its own description. */
export interface CgroupLayout {
  driver: 'cgroupfs' | 'systemd'
  version: 1 | 2
  root?: string
}

/** The group in which the engine runs BuildKit's steps, whatever the kernel's version calls its files. */
export interface BuildGroup {
  /** With systemd the steps have no group of their own above them; only each step can be limited. */
  readonly per_step: boolean
  /** Makes the group where it can be made; throws where it cannot be used. */
  prepare(): void
  /**
   * Bytes that the group holds before a build, such as kernel memory of steps that ended: steps would have
   * that much less than they were promised. Files that are kept in memory are not counted, unless everything
   * is asked for: they make room.
   */
  held(everything?: boolean): number
  /** Limits all steps together; without limits, lifts them. */
  limitAll(limits: GroupLimits | undefined): void
  limitStep(step: string, limits: GroupLimits): void
  /** Steps that run now. */
  steps(): string[]
  /** Processes of a step that the kernel killed for memory. */
  stepKills(step: string): number | undefined
  /** The same for all steps since the group was made; 0 where the kernel does not count them. */
  groupKills(): number
  /** Grows when the memory limit of the group is touched. */
  limitHits(): number
  /** Lets `limitHits` begin anew where it comes from a peak. */
  resetPeak(): void
}

const CPU_PERIOD_US = 100_000
/** Enough for any compiler, and an end to a fork bomb. */
const PIDS = '4096'
const CGROUPFS_GROUP = 'docker/buildkit'
const SYSTEMD_STEP = /^system\.slice:docker:/

const quota = ({ cpus }: GroupLimits): string => String(Math.round(cpus * CPU_PERIOD_US))
const bytes = ({ memory_bytes }: GroupLimits): string => String(Math.round(memory_bytes))

/** Files that are optional, or not there in this kernel. */
function tryWrite(path: string, text: string): void {
  try {
    writeFileSync(path, text)
  } catch {
    // Nothing depends on it.
  }
}

function readNumber(path: string, key?: string): number | undefined {
  try {
    const text = readFileSync(path, 'utf8')
    return Number(key ? new RegExp(`^${key} (\\d+)$`, 'm').exec(text)?.[1] : text.trim())
  } catch {
    return undefined
  }
}

function folders(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
  } catch {
    return []
  }
}

/**
 * Makes the group's folders below one that exists. Step by step: Node's recursive form can loop for ever in
 * such file systems.
 */
function makeGroup(base: string, group: string): void {
  for (const [index] of group.split('/').entries()) {
    try {
      mkdirSync(join(base, ...group.split('/').slice(0, index + 1)))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}

/** The group of BuildKit's steps for what the engine says about itself. */
export function buildGroup({ driver, version, root = '/sys/fs/cgroup' }: CgroupLayout): BuildGroup {
  const files = version === 1 ? versionOne : versionTwo
  return driver === 'systemd' ? systemdGroup(files(root, 'system.slice')) : files(root, CGROUPFS_GROUP)
}

/**
 * With systemd all steps lie in a slice beside everything else of the system, which is none of our business.
 */
function systemdGroup(slice: BuildGroup): BuildGroup {
  return {
    ...slice,
    per_step: true,
    prepare: () => {
      if (slice.steps().length === 0) throw new Error('there is no such slice')
    },
    held: () => 0,
    limitAll: () => {},
    steps: () => slice.steps().filter((name) => SYSTEMD_STEP.test(name)),
    groupKills: () => 0,
    limitHits: () => 0,
    resetPeak: () => {},
  }
}

/** Version 1: a tree per controller. */
function versionOne(root: string, group: string): BuildGroup {
  const path = (controller: string, ...rest: string[]) => join(root, controller, group, ...rest)
  const peaks = ['memory.max_usage_in_bytes', 'memory.memsw.max_usage_in_bytes'].map((file) =>
    path('memory', file),
  )

  function limit(step: string, limits: GroupLimits | undefined): void {
    const memory = limits ? bytes(limits) : '-1'
    // The limit with swap may never be the lower of the two, so raising begins with it and lowering ends with
    // it.
    tryWrite(path('memory', step, 'memory.memsw.limit_in_bytes'), memory)
    writeFileSync(path('memory', step, 'memory.limit_in_bytes'), memory)
    tryWrite(path('memory', step, 'memory.memsw.limit_in_bytes'), memory)
    tryWrite(path('cpu', step, 'cpu.cfs_period_us'), String(CPU_PERIOD_US))
    writeFileSync(path('cpu', step, 'cpu.cfs_quota_us'), limits ? quota(limits) : '-1')
    tryWrite(path('pids', step, 'pids.max'), limits ? PIDS : 'max')
  }
  return {
    // What the group holds moves its limit up; a step's own group begins empty.
    per_step: true,
    prepare: () => {
      for (const controller of ['memory', 'cpu', 'pids']) makeGroup(join(root, controller), group)
    },
    held(everything = false) {
      const used = readNumber(path('memory', 'memory.usage_in_bytes')) ?? 0
      if (everything) return used
      const files = ['total_inactive_file', 'total_active_file'].map(
        (key) => readNumber(path('memory', 'memory.stat'), key) || 0,
      )
      return Math.max(0, used - files[0]! - files[1]!)
    },
    limitAll: (limits) => limit('', limits),
    limitStep: limit,
    steps: () => folders(path('memory')),
    stepKills: (step) => readNumber(path('memory', step, 'memory.oom_control'), 'oom_kill'),
    // Kills are counted in the step's own group, which goes away with the step, and failures not in every
    // kernel: the peak of use tells whether the limit was touched.
    groupKills: () => 0,
    limitHits() {
      const limit_bytes = readNumber(path('memory', 'memory.limit_in_bytes')) ?? Infinity
      return Math.max(...peaks.map((file) => readNumber(file) ?? 0)) >= limit_bytes * 0.99 ? 1 : 0
    },
    resetPeak: () => {
      for (const file of peaks) tryWrite(file, '0')
    },
  }
}

/** Version 2: one tree; a controller works in a group only where every group above it hands it on. */
function versionTwo(root: string, group: string): BuildGroup {
  const path = (...rest: string[]) => join(root, group, ...rest)

  function limit(step: string, limits: GroupLimits | undefined): void {
    writeFileSync(path(step, 'memory.max'), limits ? bytes(limits) : 'max')
    tryWrite(path(step, 'memory.swap.max'), limits ? '0' : 'max')
    writeFileSync(path(step, 'cpu.max'), `${limits ? quota(limits) : 'max'} ${CPU_PERIOD_US}`)
    tryWrite(path(step, 'pids.max'), limits ? PIDS : 'max')
  }
  return {
    per_step: true,
    prepare() {
      makeGroup(root, group)
      const above = group.split('/').slice(0, -1)
      for (let depth = 0; depth <= above.length; depth++)
        writeFileSync(join(root, ...above.slice(0, depth), 'cgroup.subtree_control'), '+memory +cpu +pids')
    },
    held: () =>
      ['anon', 'shmem', 'slab_unreclaimable', 'kernel_stack', 'percpu']
        .map((key) => readNumber(path('memory.stat'), key) || 0)
        .reduce((sum, bytes_held) => sum + bytes_held, 0),
    limitAll: (limits) => limit('', limits),
    limitStep: limit,
    steps: () => folders(path()),
    stepKills: (step) => readNumber(path(step, 'memory.events'), 'oom_kill'),
    groupKills: () => readNumber(path('memory.events'), 'oom_kill') ?? 0,
    limitHits: () => readNumber(path('memory.events'), 'max') ?? 0,
    resetPeak: () => {},
  }
}
