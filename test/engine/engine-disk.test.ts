import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newId } from '#server/kernel/ids'
import type { Engine, Image } from '#server/platform/engine/engine'
import { BUSYBOX_IMAGE, ensureBusyboxImage, testEngine } from '#test/support/engine-images'

const project_id = newId('prj')
let engine: Engine
let built: Image
beforeAll(async () => {
  await ensureBusyboxImage()
  engine = testEngine()
  const context = mkdtempSync(join(tmpdir(), 'portreeve-disk-'))
  writeFileSync(join(context, 'blob'), Buffer.alloc(3_000_000, project_id))
  built = await engine.buildImage(
    {
      context,
      dockerfile: `FROM ${BUSYBOX_IMAGE}\nCOPY blob /blob\nRUN cat /blob /blob > /two`,
      tag: `portreeve-test/disk:${project_id}`,
      labels: { project: project_id },
      build_args: {},
      secrets: {},
      no_cache: false,
      cache_scope: project_id,
      limits: { cpus: 1, memory_bytes: 256 * 1024 ** 2, timeout_ms: 60_000 },
      onLog: () => {},
    },
    new AbortController().signal,
  )
  rmSync(context, { recursive: true })
})
afterAll(async () => {
  await engine.removeImage(built.id)
  await engine.close()
})

test('what takes the disk is told, also to several who ask at once, and what is pruned is free', async () => {
  const [found, second] = await Promise.all([engine.diskUsage(), engine.diskUsage()])
  expect(second.images).toHaveLength(found.images.length)
  expect(found.directory).toMatch(/^\//)
  const image = found.images.find(({ id }) => id === built.id)
  expect(image).toMatchObject({ made_by: 'us', containers: 0, digests: [] })
  expect(image!.own_bytes).toBeGreaterThan(8_000_000)
  expect(found.layers_bytes).toBeGreaterThan(image!.own_bytes)
  expect(Date.parse((await engine.imageNamedAt(built.id))!)).toBeGreaterThan(Date.now() - 600_000)
  expect(await engine.imageNamedAt(`sha256:${'0'.repeat(64)}`)).toBeUndefined()
  const stand_in = found.images.find(({ tags }) => tags.includes(BUSYBOX_IMAGE))
  expect(stand_in).toMatchObject({ made_by: 'nobody' })

  expect(found.build_cache.length).toBeGreaterThan(0)
  expect(await engine.pruneBuildCache({ unused_for_s: 365 * 86_400 })).toBe(0)
  expect(await engine.removeImage(built.id)).toBe(true)
  expect(await engine.pruneBuildCache({ unused_for_s: 0 })).toBeGreaterThan(3_000_000)
  const after = await engine.diskUsage()
  expect(after.images.some(({ id }) => id === built.id)).toBe(false)
  expect(after.layers_bytes).toBeLessThan(found.layers_bytes)
})
