import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { pack } from 'tar-stream'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newId } from '#server/kernel/ids'
import type { Engine } from '#server/platform/engine/engine'
import { createEngineHoles } from '#server/platform/host-rules/engine-holes'
import { openLayerFiles } from '#server/platform/host-rules/engine-layers'
import { findEngine } from '#server/platform/host-rules/engine-process'
import { BUSYBOX_IMAGE, ensureBusyboxImage, TEST_DOCKER_HOST, testEngine } from '#test/support/engine-images'
import { poll } from '#test/support/poll'

const calm = new AbortController().signal
const project = newId('prj')
const MIB = 1024 ** 2
const socket = TEST_DOCKER_HOST.replace(/^unix:\/\//, '')
const refused = { code: 'build_failed', message: expect.stringContaining('larger than what is in them') }
let is_full = false
let engine: Engine
let context: string
let holes: ReturnType<typeof createEngineHoles>

const build = (lines: string[], no_cache = true) =>
  engine.buildImage(
    {
      context,
      dockerfile: [`FROM ${BUSYBOX_IMAGE} AS one`, ...lines].join('\n'),
      tag: 'portreeve-test/holes:1',
      labels: { project },
      build_args: {},
      secrets: {},
      no_cache,
      cache_scope: project,
      limits: { cpus: 1, memory_bytes: 128 * MIB, timeout_ms: 120_000 },
      onLog: () => {},
    },
    calm,
  )
/** Large files of layers that the engine reads or writes. */
async function worksOn() {
  const { pid } = (await findEngine(socket))!
  return (await openLayerFiles(pid)).filter(({ holes_bytes }) => holes_bytes > 0)
}
/** Programs of engines that unpack an archive. */
const unpacking = () =>
  readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('docker-untar')
    } catch {
      return false
    }
  })

beforeAll(async () => {
  await ensureBusyboxImage()
  holes = createEngineHoles({
    docker_host: TEST_DOCKER_HOST,
    log: () => {},
    isDiskFull: () => is_full,
  })
  engine = testEngine({ watchHoles: holes.watch, isDiskFull: () => is_full })
  context = mkdtempSync(join(tmpdir(), 'portreeve-holes-'))
})
afterAll(async () => {
  holes.stop()
  for (const image of await engine.listImages({ project })) await engine.removeImage(image.id)
  await engine.close()
  rmSync(context, { recursive: true })
})

test('a step that makes a file of nothing but holes fails the build, and the engine reads no further', async () => {
  await expect(build(['RUN truncate -s 3000G /x'])).rejects.toMatchObject(refused)
  await poll(async () => (await worksOn()).length === 0)
})

test('so do a thousand such files, also where another stage copies them', async () => {
  const lines = [
    'RUN mkdir /m && cd /m && for i in $(seq 1000); do truncate -s 10G $i; done',
    `FROM ${BUSYBOX_IMAGE}`,
    'COPY --from=one /m /m',
  ]
  await expect(build(lines)).rejects.toMatchObject(refused)
  await poll(async () => (await worksOn()).length === 0)
})

test('so does a file with thousands of names', async () => {
  const lines = [
    'RUN mkdir /m && cd /m && dd if=/dev/zero of=0 bs=1M count=40 && for i in $(seq 600); do ln 0 $i; done',
    `FROM ${BUSYBOX_IMAGE}`,
    'COPY --from=one /m /m',
  ]
  await expect(build(lines)).rejects.toMatchObject(refused)
})

test('the next build is refused as well, where its step is taken from the cache', async () => {
  const lines = [`RUN echo ${newId('run')} && truncate -s 300G /x`]
  await expect(build(lines, false)).rejects.toMatchObject(refused)
  await expect(build(lines, false)).rejects.toMatchObject(refused)
})

test('a file with few holes is built as it is', async () => {
  const { size_bytes } = await build(['RUN truncate -s 200M /x && echo end >> /x'])
  expect(size_bytes).toBeGreaterThan(200 * MIB)
})

test('an archive that fills the disk is not unpacked any further once its build has ended', async () => {
  const before = unpacking()
  const tar = pack()
  tar.entry({ name: 'zeros' }, Buffer.alloc(700 * MIB))
  tar.finalize()
  writeFileSync(join(context, 'zeros.tar.gz'), gzipSync(await buffer(tar), { level: 1 }))
  const building = build(['ADD zeros.tar.gz /a/', 'ADD zeros.tar.gz /b/', 'ADD zeros.tar.gz /c/'])
  building.catch(() => {})
  await poll(() => unpacking().some((pid) => !before.includes(pid)))
  is_full = true
  await expect(building).rejects.toMatchObject({ code: 'disk_full' })
  await poll(() => unpacking().every((pid) => before.includes(pid)))
  is_full = false
})
