import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newId } from '#server/kernel/ids'
import type { BuildSpec, Engine } from '#server/platform/engine/engine'
import { BUSYBOX_IMAGE, ensureBusyboxImage, testEngine } from '#test/support/engine-images'

const MIB = 1024 ** 2
const calm = new AbortController().signal
const project = newId('prj')
/** The group of BuildKit's steps, where Portreeve makes it itself. */
const V1 = '/sys/fs/cgroup/memory'
const V2 = '/sys/fs/cgroup/docker/buildkit'
const GROUP = existsSync(V1) ? join(V1, 'docker/buildkit') : [V2].find(existsSync)
const HELD = '/dev/shm/ptr-held'
let engine: Engine
let context: string

function build(lines: string[], log: string[] = [], more: Partial<BuildSpec> = {}) {
  const spec: BuildSpec = {
    context,
    dockerfile: [`FROM ${BUSYBOX_IMAGE}`, ...lines].join('\n'),
    tag: 'portreeve-test/held:1',
    labels: { project },
    build_args: {},
    secrets: {},
    no_cache: true,
    cache_scope: project,
    limits: { cpus: 1, memory_bytes: 64 * MIB, timeout_ms: 60_000 },
    onLog: ({ text }) => log.push(text),
    ...more,
  }
  return engine.buildImage(spec, calm)
}

/** Makes the group hold what nothing takes back: a file in memory, written by a process of the group. */
function hold(mebibytes: number): void {
  const child = join(GROUP!, 'ptr-held')
  mkdirSync(child, { recursive: true })
  const write = `echo $$ > ${child}/cgroup.procs && head -c ${mebibytes}m /dev/zero > ${HELD}`
  execFileSync('sh', ['-c', write])
}

beforeAll(async () => {
  await ensureBusyboxImage()
  engine = testEngine()
  context = mkdtempSync(join(tmpdir(), 'portreeve-held-'))
  await build(['RUN true'])
})
afterAll(async () => {
  rmSync(HELD, { force: true })
  if (GROUP && existsSync(join(GROUP, 'ptr-held'))) rmdirSync(join(GROUP, 'ptr-held'))
  for (const image of await engine.listImages({ project })) await engine.removeImage(image.id)
  await engine.close()
  rmSync(context, { recursive: true })
})

it.skipIf(!GROUP)(
  'a build whose limit is below what the group of its steps holds already is made by BuildKit, with all of its memory',
  async () => {
    hold(160)
    const log: string[] = []
    await build(
      [
        'RUN --mount=type=secret,id=a test "$(cat /run/secrets/a)" = x',
        'RUN dd if=/dev/zero bs=30M count=1 | wc -c',
      ],
      log,
      { secrets: { a: 'x' } },
    )
    expect(log).toContain(String(30 * MIB))
    expect(log.join('\n')).not.toContain('classic builder')
    expect((await engine.version()).classic_because).toBeUndefined()
    await expect(build(['RUN tail /dev/zero'])).rejects.toMatchObject({ code: 'out_of_memory' })
  },
)
it.skipIf(!GROUP)('limits are lifted after it', () => {
  const file = ['memory.limit_in_bytes', 'memory.max'].map((name) => join(GROUP!, name)).find(existsSync)!
  expect(readFileSync(file, 'utf8').trim()).toMatch(/^(?:max|92\d{17})$/)
})
