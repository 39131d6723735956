import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BuildSpec } from './engine.ts'

type Limits = Pick<BuildSpec['limits'], 'cpus' | 'memory_bytes'>

/** How the engine groups processes; from its own description. */
export interface CgroupLayout { driver: 'cgroupfs' | 'systemd'; version: 1 | 2; root?: string }

/** One running build's share of the cap. */
export interface CappedBuild {
  /** Whether any build step was seen inside the capped group since this build began. */
  seen(): boolean
  /** What memory did: a process was killed, the limit was touched, or neither. */
  memory(): 'killed' | 'limit_hit' | 'fine'
  end(): void
}

const CPU_PERIOD_US = 100_000
/** Enough for any compiler, and an end to a fork bomb. */
const PIDS = 4096
const POLL_MS = 50
const SYSTEMD_STEP = /^system\.slice:docker:/

/**
 * Caps BuildKit through the group in which the engine runs its build steps, since the engine ignores limits and group names
 * that are sent with such a build. All builds share the group: it may use the sum of what the running builds may use, and when
 * several run, each step is held to one build's share. Answers nothing where the groups cannot be set from here.
 */
export function createBuildCap(layout: CgroupLayout) {
  const files = cgroupFiles(layout)
  const active = new Set<Limits>()
  const children = new Map<string, number>()
  let steps = 0
  let kills = 0
  let timer: NodeJS.Timeout | undefined

  const largest = (): Limits => ({
    cpus: Math.max(...[...active].map(({ cpus }) => cpus)), memory_bytes: Math.max(...[...active].map(({ memory_bytes }) => memory_bytes)),
  })
  function applyToGroup(): void {
    const all = [...active]
    files.limitGroup(all.length === 0 ? undefined : {
      cpus: all.reduce((sum, { cpus }) => sum + cpus, 0), memory_bytes: all.reduce((sum, { memory_bytes }) => sum + memory_bytes, 0),
    })
  }
  function poll(): void {
    for (const step of files.steps()) {
      const before = children.get(step)
      if (before === undefined) {
        steps += 1
        if (files.per_step || active.size > 1) files.limitStep(step, largest())
      }
      const now = files.kills(step) ?? before ?? 0
      kills += Math.max(0, now - (before ?? 0))
      children.set(step, now)
    }
  }

  return {
    begin(limits: Limits): CappedBuild | undefined {
      active.add(limits)
      try {
        files.prepare()
        applyToGroup()
      } catch {
        active.delete(limits)
        return undefined
      }
      timer ??= setInterval(poll, POLL_MS)
      poll()
      if (active.size === 1) files.resetPeak()
      const first_step = steps
      const first_kill = kills
      const first_group_kill = files.groupKills()
      const first_hit = files.limitHits()
      return {
        seen() {
          poll()
          return steps > first_step
        },
        memory() {
          poll()
          if (kills > first_kill || files.groupKills() > first_group_kill) return 'killed'
          return files.limitHits() > first_hit ? 'limit_hit' : 'fine'
        },
        end() {
          if (!active.delete(limits)) return
          try { applyToGroup() } catch { /* Usage is still above the lower limit; the next build sets it again. */ }
          if (active.size > 0) return
          clearInterval(timer)
          timer = undefined
          children.clear()
        },
      }
    },
  }
}
export type BuildCap = ReturnType<typeof createBuildCap>

/** The files behind the groups; versions 1 and 2 differ in every name. */
function cgroupFiles({ driver, version, root = '/sys/fs/cgroup' }: CgroupLayout) {
  const per_step = driver === 'systemd'
  const group = per_step ? 'system.slice' : 'docker/buildkit'
  const directory = (controller: string) => (version === 1 ? join(root, controller, group) : join(root, group))
  const write = (controller: string, step: string, file: string, text: string) => writeFileSync(join(directory(controller), step, file), text)
  const tryWrite = (...args: Parameters<typeof write>) => { try { write(...args) } catch { /* Optional, or not there in this kernel. */ } }
  const number = (controller: string, step: string, file: string, key?: string): number | undefined => {
    try {
      const text = readFileSync(join(directory(controller), step, file), 'utf8')
      return Number(key ? new RegExp(`^${key} (\\d+)$`, 'm').exec(text)?.[1] : text.trim())
    } catch {
      return undefined
    }
  }

  function limit(step: string, limits: Limits | undefined): void {
    const memory = limits ? String(Math.round(limits.memory_bytes)) : version === 1 ? '-1' : 'max'
    const quota = limits ? String(Math.round(limits.cpus * CPU_PERIOD_US)) : version === 1 ? '-1' : 'max'
    if (version === 1) {
      // The limit with swap may never be the lower of the two, so raising begins with it and lowering ends with it.
      tryWrite('memory', step, 'memory.memsw.limit_in_bytes', memory)
      write('memory', step, 'memory.limit_in_bytes', memory)
      tryWrite('memory', step, 'memory.memsw.limit_in_bytes', memory)
      tryWrite('cpu', step, 'cpu.cfs_period_us', String(CPU_PERIOD_US))
      write('cpu', step, 'cpu.cfs_quota_us', quota)
      tryWrite('pids', step, 'pids.max', limits ? String(PIDS) : 'max')
    } else {
      write('', step, 'memory.max', memory)
      tryWrite('', step, 'memory.swap.max', limits ? '0' : 'max')
      write('', step, 'cpu.max', `${quota} ${CPU_PERIOD_US}`)
      tryWrite('', step, 'pids.max', limits ? String(PIDS) : 'max')
    }
  }

  return {
    per_step,
    prepare(): void {
      if (per_step) {
        readdirSync(directory('memory'))
        return
      }
      if (version === 1) for (const controller of ['memory', 'cpu', 'pids']) mkdirSync(directory(controller), { recursive: true })
      else {
        mkdirSync(directory(''), { recursive: true })
        for (const folder of ['', 'docker']) writeFileSync(join(root, folder, 'cgroup.subtree_control'), '+memory +cpu +pids')
      }
    },
    limitGroup(limits: Limits | undefined): void {
      if (!per_step) limit('', limits)
    },
    limitStep(step: string, limits: Limits): void {
      try { limit(step, limits) } catch { /* The step has ended already. */ }
    },
    steps(): string[] {
      try {
        const folders = readdirSync(directory('memory'), { withFileTypes: true }).filter((entry) => entry.isDirectory()).map(({ name }) => name)
        return per_step ? folders.filter((name) => SYSTEMD_STEP.test(name)) : folders
      } catch {
        return []
      }
    },
    kills: (step: string) => (version === 1 ? number('memory', step, 'memory.oom_control', 'oom_kill') : number('', step, 'memory.events', 'oom_kill')),
    /** Version 2 counts kills for the whole group; in version 1 the count goes away with the step. */
    groupKills: () => (version === 2 && !per_step ? (number('', '', 'memory.events', 'oom_kill') ?? 0) : 0),
    /** How often the limit was touched (version 2), or whether usage came up to it since the last reset (version 1: 0 or 1). */
    limitHits(): number {
      if (per_step) return 0
      if (version === 2) return number('', '', 'memory.events', 'max') ?? 0
      const limit_bytes = number('memory', '', 'memory.limit_in_bytes') ?? Infinity
      const peaks = ['memory.max_usage_in_bytes', 'memory.memsw.max_usage_in_bytes'].map((file) => number('memory', '', file) ?? 0)
      return Math.max(...peaks) >= limit_bytes * 0.99 ? 1 : 0
    },
    resetPeak(): void {
      if (version !== 1 || per_step) return
      for (const file of ['memory.max_usage_in_bytes', 'memory.memsw.max_usage_in_bytes']) tryWrite('memory', '', file, '0')
    },
  }
}
