import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { isReserveTouched } from '#server/kernel/disk-reserve'
import { createDockerEngine } from '#server/platform/engine/docker'
import type { Engine } from '#server/platform/engine/engine'
import { createEngineStandIn, json } from '#test/support/engine-stand-in'

const calm = new AbortController().signal
const ROOT = '/somewhere/docker'

let context: string
let server: Awaited<ReturnType<typeof createEngineStandIn>>
let engine: Engine
let full: boolean
/** Aborts once the engine has taken too much memory. */
let taken: AbortController
/** Bytes that the container of a command wrote. */
let wrote: number
beforeEach(async () => {
  context = mkdtempSync(join(tmpdir(), 'portreeve-room-'))
  full = false
  taken = new AbortController()
  wrote = 0
  const owned = { 'portreeve.managed': 'true', 'portreeve.installation': 'default' }
  server = await createEngineStandIn(({ method, path }, response) => {
    // Builds, pulls and commands go on until somebody ends them.
    if (path === '/build' || path === '/images/create' || path.endsWith('/wait'))
      return void response.writeHead(200).flushHeaders()
    if (path === '/info') return json(response, { DockerRootDir: ROOT })
    if (path === '/version') return json(response, { Version: '1', ApiVersion: '1.41', Os: 'linux' })
    if (path === '/containers/create') return json(response, { Id: 'c1' }, 201)
    if (path === '/containers/c1/json')
      return json(response, {
        Id: 'c1',
        SizeRw: wrote,
        Config: { Labels: owned, Tty: false },
        State: { Status: 'running', Running: true, StartedAt: '2026-01-01T00:00:00Z' },
      })
    if (path.endsWith('/logs')) return void response.writeHead(200).flushHeaders()
    if (path.startsWith('/containers/') && path.endsWith('/json') && method === 'GET')
      return json(response, { message: 'none' }, 404)
    json(response, {})
  })
  engine = createDockerEngine({
    docker_host: server.docker_host,
    builder: 'classic',
    layer_bytes: 1024 ** 3,
    isDiskFull: (directory) => full && directory === ROOT,
    watchMemory: (signal) => ({
      signal: AbortSignal.any([signal, taken.signal]),
      filled: () => taken.signal.aborted,
      stop: () => {},
    }),
  })
})
afterEach(async () => {
  await engine.close()
  await server.close()
  rmSync(context, { recursive: true })
})

const seen = (path: string) => server.seen.some((request) => request.path === path)
/** Waits until the engine has been asked for the work, then fills its disk. */
async function fillDuring(path: string): Promise<void> {
  while (!seen(path)) await new Promise((resolve) => setImmediate(resolve))
  full = true
}
const build = () =>
  engine.buildImage(
    {
      context,
      dockerfile: 'FROM x',
      tag: 't:1',
      labels: {},
      build_args: {},
      secrets: {},
      no_cache: false,
      cache_scope: 'prj_x',
      limits: { cpus: 1, memory_bytes: 1e8, timeout_ms: 60_000 },
      onLog: () => {},
    },
    calm,
  )
const command = () =>
  engine.runOnce(
    {
      owner: { kind: 'app', id: 'app_x' },
      project_id: 'prj_x',
      release_id: 'rel_x',
      image: 'i',
      environment: {},
      network: 'net',
      limits: { cpus: 1, memory_bytes: 1e8, pids: 10 },
      stop_grace_s: 0,
      purpose: 'task',
      timeout_ms: 60_000,
      onLog: () => {},
    },
    calm,
  )

test('a build that leaves the disk nothing but the reserve is ended with a sentence, and its caches go', async () => {
  const building = build()
  building.catch(() => {})
  await fillDuring('/build')
  await expect(building).rejects.toMatchObject({
    code: 'disk_full',
    message: expect.stringContaining('The build was ended: what is left of the disk'),
  })
  expect(seen('/build/prune')).toBe(true)
})

test('a pull that leaves the disk nothing but the reserve is ended with a sentence', async () => {
  const pulling = engine.pullImage('registry.example.com/huge:1', { onLog: () => {} }, calm)
  pulling.catch(() => {})
  await fillDuring('/images/create')
  await expect(pulling).rejects.toMatchObject({
    code: 'disk_full',
    message: expect.stringContaining('The pull of the image registry.example.com/huge:1 was ended'),
  })
})

test('on a full disk the command that wrote much is ended and removed', async () => {
  wrote = 65 * 1024 ** 2
  const running = command()
  running.catch(() => {})
  await fillDuring('/containers/c1/wait')
  await expect(running).rejects.toMatchObject({
    code: 'disk_full',
    message: expect.stringContaining('The command was ended'),
  })
  expect(server.seen).toContainEqual(
    expect.objectContaining({ method: 'DELETE', path: '/containers/rel_x-task' }),
  )
})

test('a command that wrote more into its container than an instance may is ended with both sizes', async () => {
  wrote = 2 * 1024 ** 3
  const running = command()
  running.catch(() => {})
  await fillDuring('/containers/c1/wait')
  await expect(running).rejects.toMatchObject({
    code: 'disk_exceeded',
    message: expect.stringContaining('wrote 2048 MiB into its container, and 1024 MiB is the most'),
  })
})

test('the disk of this machine has more left than the reserve, and a folder that is not here has no disk', () => {
  expect(isReserveTouched(context)).toBe(false)
  expect(isReserveTouched('/nowhere/at/all')).toBe(false)
})

test.each([
  ['The build', '/build', () => build()],
  [
    'The pull of the image evil.example/x:1',
    '/images/create',
    () => engine.pullImage('evil.example/x:1', { onLog: () => {} }, calm),
  ],
])(
  '%s that makes the engine take the memory of the server is ended with a sentence',
  async (what, path, start) => {
    const working = start()
    working.catch(() => {})
    while (!seen(path)) await new Promise((resolve) => setImmediate(resolve))
    taken.abort()
    await expect(working).rejects.toMatchObject({
      code: 'image_refused',
      message: expect.stringContaining(`${what} was ended: a registry sent so much`),
    })
  },
)
