import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createEngineHoles } from '#server/platform/host-rules/engine-holes'
import type { OpenFile } from '#server/platform/host-rules/engine-layers'
import { startOf } from '#server/platform/host-rules/engine-process'

const GIB = 1024 ** 3
const calm = new AbortController().signal
const A = 'a'.repeat(25)
const B = 'b'.repeat(25)
let root: string
let open: OpenFile[]
let forgotten: string[]
/** How long the file of the first layer was each time that it was looked. */
let asked: number[]
let holes: ReturnType<typeof createEngineHoles>

const fileOf = (layer: string, name: string) => join(root, 'overlay2', layer, 'diff', name)
const sizeOf = (layer: string, name: string) =>
  statSync(fileOf(layer, name), { throwIfNoEntry: false })?.size ?? -1

/** A layer begun at a moment, with files that are all holes. */
function makeLayer(layer: string, began_s: number, files: Record<string, number>): void {
  mkdirSync(join(root, 'overlay2', layer, 'diff'), { recursive: true })
  writeFileSync(join(root, 'overlay2', layer, 'link'), 'X')
  utimesSync(join(root, 'overlay2', layer, 'link'), began_s, began_s)
  for (const [name, size] of Object.entries(files)) {
    writeFileSync(fileOf(layer, name), 'text')
    truncateSync(fileOf(layer, name), size)
  }
}
const reading = (layer: string, holes_bytes = GIB): OpenFile => ({
  root,
  layers: [layer],
  inode: 1,
  holes_bytes,
  position: 5,
  writes: false,
})
const isCut = (layer: string) => sizeOf(layer, 'x') === 0
const builtAt = (began_s: number, uses_cached = false) => ({
  madeAt: (ms: number) => ms === began_s * 1000,
  usesCached: () => uses_cached,
})

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'portreeve-holes-'))
  mkdirSync(join(root, 'image/overlay2/layerdb/sha256'), { recursive: true })
  open = []
  forgotten = []
  asked = []
  const engine = { pid: process.pid, started: await startOf(process.pid), group: '/', network: '' }
  holes = createEngineHoles({
    docker_host: 'unix:///x',
    log: () => {},
    find: async () => engine,
    // What was cut is at its end when it is asked for again.
    openFiles: async () => {
      asked.push(...open.slice(0, 1).map(({ layers: [layer] }) => sizeOf(layer!, 'x')))
      return open.filter(({ layers }) => layers.every((one) => !isCut(one)))
    },
    isDiskFull: () => false,
    look_ms: 3_600_000,
    forget: async (layer) => void forgotten.push(layer),
  })
})
afterEach(() => {
  holes.stop()
  rmSync(root, { recursive: true })
})

test('a build whose layer is mostly holes is ended alone, and nothing is left in it to read', async () => {
  makeLayer(A, 100, { x: 20 * GIB, small: 10 })
  makeLayer(B, 200, { x: 20 * GIB })
  const guilty = holes.watch(calm, builtAt(100))
  const other = holes.watch(calm, builtAt(200, true))
  open = [reading(A)]
  await holes.look()
  expect([guilty.filled(), other.filled()]).toEqual([true, false])
  expect([asked, sizeOf(B, 'x')]).toEqual([[20 * GIB, 0], 20 * GIB])
  expect(readFileSync(fileOf(A, 'small'), 'utf8')).toBe('text\0\0\0\0\0\0')
})

test('what was cut is refused again when the builder takes it for whole', async () => {
  makeLayer(A, 100, { x: 20 * GIB })
  const first = holes.watch(calm, builtAt(100))
  open = [reading(A)]
  await holes.look()
  first.stop()
  expect([sizeOf(A, 'x') > 16 * GIB, forgotten]).toEqual([true, [A]])
  const [idle, next] = [holes.watch(calm, builtAt(300)), holes.watch(calm, builtAt(300, true))]
  open = [reading(A)]
  await holes.look()
  expect([idle.filled(), next.filled(), forgotten]).toEqual([false, true, [A, A]])
})

test('holes of all layers of a build count together, those of several builds do not', async () => {
  for (const [at, layer] of [A, B].entries()) makeLayer(layer, at, { x: 9 * GIB })
  const [one, two] = [holes.watch(calm, builtAt(0)), holes.watch(calm, builtAt(1))]
  open = [reading(A), reading(B)]
  await holes.look()
  expect([one.filled(), two.filled(), sizeOf(A, 'x')]).toEqual([false, false, 9 * GIB])
  const both = { madeAt: (ms: number) => ms >= 2000, usesCached: () => false }
  for (const [at, layer] of ['c', 'd'].entries()) makeLayer(layer.repeat(25), 2 + at, { x: 9 * GIB })
  const three = holes.watch(calm, both)
  open = [reading('c'.repeat(25)), reading('d'.repeat(25))]
  await holes.look()
  expect([three.filled(), forgotten]).toEqual([true, ['c'.repeat(25), 'd'.repeat(25)]])
})

test('many small files are found once their layer is read for some time', async () => {
  const files = Array.from({ length: 400 }, (_, at): [string, number] => [`${at}`, 60 * 1024 ** 2])
  makeLayer(A, 100, { ...Object.fromEntries(files), x: 60 * 1024 ** 2 })
  const build = holes.watch(calm, builtAt(100))
  open = [reading(A, 0)]
  await holes.look()
  expect(build.filled()).toBe(false)
  await holes.look()
  await holes.look()
  expect([build.filled(), forgotten]).toEqual([true, [A]])
})

test('a layer of an image is never cut, nor one of which nobody can tell whether it is', async () => {
  makeLayer(A, 100, { x: 20 * GIB })
  const chain = join(root, 'image/overlay2/layerdb/sha256/0')
  mkdirSync(chain)
  writeFileSync(join(chain, 'cache-id'), A)
  open = [reading(A)]
  await holes.look()
  expect(sizeOf(A, 'x')).toBe(20 * GIB)
  rmSync(join(root, 'image'), { recursive: true })
  makeLayer(B, 100, { x: 20 * GIB })
  open = [reading(B)]
  await holes.look()
  expect(sizeOf(B, 'x')).toBe(20 * GIB)
})

test('files with as much on the disk as they are long end no build', async () => {
  makeLayer(A, 100, {})
  writeFileSync(fileOf(A, 'full'), Buffer.alloc(4 * 1024 ** 2, 1))
  const build = holes.watch(calm, builtAt(100))
  open = [reading(A, 0)]
  for (let look = 0; look < 4; look += 1) await holes.look()
  expect([build.filled(), sizeOf(A, 'full')]).toEqual([false, 4 * 1024 ** 2])
})

test('each further name of a file counts, since the engine reads by every one', async () => {
  makeLayer(A, 100, {})
  writeFileSync(fileOf(A, 'x'), Buffer.alloc(4 * 1024 ** 2, 1))
  for (let at = 0; at < 5_000; at += 1) linkSync(fileOf(A, 'x'), fileOf(A, `${at}`))
  const build = holes.watch(calm, builtAt(100))
  open = [reading(A)]
  await holes.look()
  expect([build.filled(), forgotten]).toEqual([true, [A]])
})

test('a file that is just copied is not cut, since an old builder would wait for the rest for ever', async () => {
  makeLayer(A, 100, { x: 20 * GIB })
  const build = holes.watch(calm, builtAt(100))
  open = [reading(A), { ...reading(B), inode: 2, layers: [], writes: true }]
  await holes.look()
  expect([build.filled(), sizeOf(A, 'x')]).toEqual([true, 20 * GIB])
})

test('work that its caller ends is no fault of its layers', () => {
  const caller = new AbortController()
  const build = holes.watch(caller.signal, builtAt(100))
  caller.abort()
  expect([build.signal.aborted, build.filled()]).toEqual([true, false])
})
