import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createBuildCap as capOf } from '#server/platform/engine/build/cap'
import { createRegister } from '#server/kernel/register'
import type { CgroupLayout } from '#server/platform/engine/cgroups'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'portreeve-cgroup-'))
  for (const controller of ['memory', 'cpu', 'pids']) mkdirSync(join(root, controller))
})
afterEach(() => rmSync(root, { recursive: true }))

const read = (path: string) => readFileSync(join(root, path), 'utf8')
const write = (text: string, path: string) => {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}
const GIB = 1024 ** 3
/** A cap as another process would have it: only the register is common. */
const createBuildCap = (layout: CgroupLayout) => capOf(layout, createRegister(join(root, 'register')))

describe('the cap of BuildKit builds, in a folder of files like those of the kernel', () => {
  test('version 1: limits memory with swap, processor and processes of the group, and lifts them after the last build', () => {
    const cap = createBuildCap({ driver: 'cgroupfs', version: 1, root })
    const build = cap.begin({ cpus: 1.5, memory_bytes: 2 * GIB })
    expect(read('memory/docker/buildkit/memory.limit_in_bytes')).toBe(String(2 * GIB))
    expect(read('memory/docker/buildkit/memory.memsw.limit_in_bytes')).toBe(String(2 * GIB))
    expect(read('cpu/docker/buildkit/cpu.cfs_quota_us')).toBe('150000')
    expect(Number(read('pids/docker/buildkit/pids.max'))).toBeGreaterThan(100)
    build.end()
    expect(read('memory/docker/buildkit/memory.limit_in_bytes')).toBe('-1')
  })

  test('two builds share the sum, and each step of theirs is held to one share', () => {
    const cap = createBuildCap({ driver: 'cgroupfs', version: 1, root })
    const [one, two] = [
      cap.begin({ cpus: 1, memory_bytes: GIB })!,
      cap.begin({ cpus: 1, memory_bytes: GIB })!,
    ]
    expect(read('memory/docker/buildkit/memory.limit_in_bytes')).toBe(String(2 * GIB))
    mkdirSync(join(root, 'memory/docker/buildkit/step'))
    for (const controller of ['cpu', 'pids']) mkdirSync(join(root, controller, 'docker/buildkit/step'))
    expect(one.seen()).toBe(true)
    expect(read('memory/docker/buildkit/step/memory.limit_in_bytes')).toBe(String(GIB))
    one.end()
    one.end()
    expect(read('memory/docker/buildkit/memory.limit_in_bytes')).toBe(String(GIB))
    two.end()
  })

  test('builds of another process on the same engine share the sum, and the end of one leaves the limit of the other', () => {
    const [here, there] = [
      createBuildCap({ driver: 'cgroupfs', version: 1, root }),
      createBuildCap({ driver: 'cgroupfs', version: 1, root }),
    ]
    const one = here.begin({ cpus: 1, memory_bytes: GIB })!
    expect(one.memory()).toBe('fine')
    const two = there.begin({ cpus: 1, memory_bytes: 2 * GIB })
    expect(read('memory/docker/buildkit/memory.limit_in_bytes')).toBe(String(3 * GIB))
    expect(one.memory()).toBe('unknown')
    two.end()
    expect(read('memory/docker/buildkit/memory.limit_in_bytes')).toBe(String(GIB))
    one.end()
    expect(read('memory/docker/buildkit/memory.limit_in_bytes')).toBe('-1')
  })

  test('a process that died without a word does not count any more', () => {
    write(
      JSON.stringify({ cpus: 1, memory_bytes: 9 * GIB }),
      `register/4194999.${'0'.repeat(8)}-0000-0000-0000-${'0'.repeat(12)}.1`,
    )
    const build = createBuildCap({ driver: 'cgroupfs', version: 1, root }).begin({
      cpus: 1,
      memory_bytes: GIB,
    })!
    expect(read('memory/docker/buildkit/memory.limit_in_bytes')).toBe(String(GIB))
    build.end()
  })

  test('version 2: switches the controllers on and tells kills and limits apart', () => {
    const cap = createBuildCap({ driver: 'cgroupfs', version: 2, root })
    write('max 3\noom_kill 5\n', 'docker/buildkit/memory.events')
    const build = cap.begin({ cpus: 2, memory_bytes: GIB })!
    expect(read('cgroup.subtree_control')).toBe('+memory +cpu +pids')
    expect(read('docker/buildkit/memory.max')).toBe(String(GIB))
    expect(read('docker/buildkit/memory.swap.max')).toBe('0')
    expect(read('docker/buildkit/cpu.max')).toBe('200000 100000')
    expect(build.memory()).toBe('fine')
    write('max 4\noom_kill 5\n', 'docker/buildkit/memory.events')
    expect(build.memory()).toBe('limit_hit')
    write('max 4\noom_kill 6\n', 'docker/buildkit/memory.events')
    expect(build.memory()).toBe('killed')
    build.end()
    expect(read('docker/buildkit/memory.max')).toBe('max')
  })

  test('with systemd: holds each step to the limits as it appears, and leaves everything else alone', () => {
    write('', 'system.slice/docker-abc.scope/memory.max')
    const cap = createBuildCap({ driver: 'systemd', version: 2, root })
    const build = cap.begin({ cpus: 1, memory_bytes: GIB })!
    expect(build.seen()).toBe(false)
    write('oom_kill 0\n', 'system.slice/system.slice:docker:step/memory.events')
    expect(build.seen()).toBe(true)
    expect(read('system.slice/system.slice:docker:step/memory.max')).toBe(String(GIB))
    write('oom_kill 1\n', 'system.slice/system.slice:docker:step/memory.events')
    expect(build.memory()).toBe('killed')
    build.end()
    expect(read('system.slice/docker-abc.scope/memory.max')).toBe('')
  })

  test('counts what the group held before a build, but not the files that it keeps in memory', () => {
    const cap = createBuildCap({ driver: 'cgroupfs', version: 1, root })
    write(String(500), 'memory/docker/buildkit/memory.usage_in_bytes')
    write('total_inactive_file 100\ntotal_active_file 60\n', 'memory/docker/buildkit/memory.stat')
    const build = cap.begin({ cpus: 1, memory_bytes: GIB })
    expect(read('memory/docker/buildkit/memory.limit_in_bytes')).toBe(String(GIB + 340))
    build.end()
  })
  test('is not there where the groups cannot be written', () => {
    for (const layout of [
      { driver: 'cgroupfs', version: 1 },
      { driver: 'systemd', version: 2 },
    ] as const) {
      const cap = createBuildCap({ ...layout, root: '/proc/nonexistent' })
      expect(() => cap.begin({ cpus: 1, memory_bytes: GIB })).toThrow(/ENOENT|no such/)
    }
  })
})
