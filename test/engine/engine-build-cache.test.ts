import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '#server/kernel/ids'
import type { BuildSpec, Engine } from '#server/platform/engine/engine'
import { BUSYBOX_IMAGE, ensureBusyboxImage, testEngine } from '#test/support/engine-images'

const calm = new AbortController().signal
let engine: Engine
let context: string
const labels = { project: newId('prj') }
const [victim, attacker] = [newId('prj'), newId('prj')]
/** So that no earlier run of these tests has a step in the cache. */
const run = newId('run')

/** Lines that the steps of a build print; a step whose result is taken from the cache prints none. */
async function build(cache_scope: string, lines: string[], more: Partial<BuildSpec> = {}): Promise<string> {
  const printed: string[] = []
  await engine.buildImage(
    {
      context,
      dockerfile: [`FROM ${BUSYBOX_IMAGE}`, ...lines].join('\n'),
      tag: `portreeve-test/cache:${run.slice(-8).toLowerCase()}`,
      labels,
      build_args: {},
      secrets: {},
      no_cache: false,
      cache_scope,
      limits: { cpus: 1, memory_bytes: 512 * 1024 ** 2, timeout_ms: 60_000 },
      onLog: ({ stream, text }) => stream === 'stdout' && printed.push(text),
      ...more,
    },
    calm,
  )
  return printed.join('\n')
}

beforeAll(async () => {
  await ensureBusyboxImage()
  engine = testEngine()
  context = mkdtempSync(join(tmpdir(), 'portreeve-cache-'))
})
afterAll(async () => {
  for (const image of await engine.listImages(labels)) await engine.removeImage(image.id)
  await engine.close()
  rmSync(context, { recursive: true })
})

describe('what a build caches', () => {
  const mount = `--mount=type=cache,id=${run},target=/root/.npm`
  it('in a mount is there for the next build of its project', async () => {
    await build(victim, [`RUN ${mount} echo canary-token > /root/.npm/token`])
    expect(await build(victim, [`RUN ${mount} cat /root/.npm/token # own`])).toBe('canary-token')
  })
  it('is not there for another project: neither to read nor to plant', async () => {
    expect(await build(attacker, [`RUN ${mount} ls /root/.npm; echo planted > /root/.npm/x`])).toBe('')
    expect(await build(victim, [`RUN ${mount} ls /root/.npm # after`])).toBe('token')
  })
  it.each([
    ['an argument', { build_args: { BUILDKIT_CACHE_MOUNT_NS: 'PLACE' } }, ''],
    ['an argument in another case', { build_args: { buildkit_cache_mount_ns: 'PLACE' } }, ''],
    ['an ARG of the Dockerfile', {}, 'ARG BUILDKIT_CACHE_MOUNT_NS=PLACE'],
    ['the id of the mount', {}, '', `id=../${victim}/${run}`],
  ])('nor by %s', async (name, more, line, id = `id=${run}`) => {
    const other = mount.replace(`id=${run}`, id)
    expect(await build(attacker, [line, `RUN ${other} cat /root/.npm/token || true # ${name}`], more)).toBe(
      '',
    )
  })
  it('in a mount is of one app alone, although a project shares the results of its steps', async () => {
    const [own, other] = [{ mount_scope: newId('app') }, { mount_scope: newId('app') }]
    await build(victim, [`RUN ${mount} echo canary-app > /root/.npm/app`], own)
    expect(await build(victim, [`RUN ${mount} cat /root/.npm/app # again`], own)).toBe('canary-app')
    expect(await build(victim, [`RUN ${mount} ls /root/.npm # other`], other)).toBe('')
    const named = mount.replace(`id=${run}`, `id=../${own.mount_scope}/${run}`)
    expect(await build(victim, [`RUN ${named} ls /root/.npm # named`], other)).toBe('')
  })
  it('of a step with a secret is not handed to another project that runs the same step', async () => {
    const steps = [
      `RUN --mount=type=secret,id=token cat /run/secrets/token > /kept # ${run}`,
      'RUN cat /kept',
    ]
    expect(await build(victim, steps, { secrets: { token: 'canary-secret' } })).toBe('canary-secret')
    expect(await build(victim, steps, { secrets: { token: 'another' } })).toBe('')
    expect(await build(attacker, steps, { secrets: { token: 'mine' } })).toBe('mine')
  })
  it('ends with whatever image the builder names and may not use', async () => {
    const asked: string[] = []
    const mayUse = (image: string) => asked.push(image) < 2
    const lines = [`COPY --from=${BUSYBOX_IMAGE}-other /bin/sh /kept`]
    await expect(build(attacker, lines, { mayUse })).rejects.toMatchObject({
      code: 'build_failed',
      message: expect.stringMatching(/^The build uses .*, which the Dockerfile does not name/),
    })
    expect(asked.join(' ')).toContain(BUSYBOX_IMAGE.split(':')[0])
  })
  it('of no project lets an image of another be read, however it is named', async () => {
    await build(victim, ['RUN echo canary-file > /kept'], { tag: 'portreeve/app_victim:dep_1' })
    try {
      for (const name of ['portreeve/app_victim:dep_1', 'docker.io/portreeve/app_victim:dep_1']) {
        for (const lines of [
          [`FROM ${name}`, 'RUN cat /kept'],
          [`COPY --from=${name} /kept /k`, 'RUN cat /k'],
        ])
          await expect(build(attacker, lines)).rejects.toMatchObject({
            code: 'build_failed',
            message: 'The Dockerfile uses an image of an app of this installation.',
          })
        await expect(
          build(attacker, [`RUN --mount=type=bind,From=${name},target=/v cat /v/kept`]),
        ).rejects.toThrow('an image of an app')
      }
    } finally {
      await engine.removeImage('portreeve/app_victim:dep_1')
    }
  })
})
