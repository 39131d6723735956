import type { ServerResponse } from 'node:http'
import { afterEach, expect, test } from 'vitest'
import { createDockerEngine } from '#server/platform/engine/docker'
import type { RunOnceSpec } from '#server/platform/engine/engine'
import { createEngineStandIn, json } from '#test/support/engine-stand-in'

const PATIENCE_MS = 60_000
const TEXT = Buffer.from('2026-01-31T12:00:00.000000000Z migrated\n')
/** A line as the engine frames it: the stream, its length, the text. */
const LINE = Buffer.concat([Buffer.from([1, 0, 0, 0, 0, 0, 0, TEXT.length]), TEXT])
let close = async () => {}
afterEach(() => close())

/** An engine that runs a command to its end, and breaks connections off after that. */
async function endsThenFails(exit_code: number, broken: { asked?: number; removed?: number; log?: number }) {
  let ended = false
  const left = { asked: 0, removed: 0, log: 0, ...broken }
  const breakOff = (response: ServerResponse) => void response.socket?.destroy()
  const server = await createEngineStandIn(({ method, path }, response) => {
    if (path === '/containers/create') return json(response, { Id: 'c1' }, 201)
    if (path.endsWith('/logs')) return left.log-- > 0 ? breakOff(response) : void response.end(LINE)
    if (path.endsWith('/wait')) {
      ended = true
      return json(response, { StatusCode: exit_code })
    }
    if (method === 'DELETE') {
      if (left.removed-- > 0) return breakOff(response)
      return void response.writeHead(204).end()
    }
    if (path === '/containers/c1/json') {
      if (ended && left.asked-- > 0) return breakOff(response)
      return json(response, {
        State: { Status: 'exited', ExitCode: exit_code, OOMKilled: false },
        Config: {},
      })
    }
    if (path.endsWith('/json')) return json(response, { message: 'no such container' }, 404)
    response.writeHead(204).end()
  })
  const engine = createDockerEngine({ docker_host: server.docker_host, builder: 'classic' })
  close = async () => {
    await engine.close()
    await server.close()
  }
  return engine
}
const spec: RunOnceSpec = {
  owner: { kind: 'app', id: 'app_1' },
  project_id: 'prj_1',
  release_id: 'rel_a',
  image: 'x',
  environment: {},
  network: 'net',
  limits: { cpus: 1, memory_bytes: 1e8, pids: 10 },
  probe: { type: 'none', grace_s: 1 },
  purpose: 'release',
  timeout_ms: PATIENCE_MS,
  onLog: () => {},
} as unknown as RunOnceSpec
const calm = new AbortController().signal

test.each([
  ['cannot be asked how', { asked: 4 }],
  ['cannot remove it', { removed: 2 }],
  ['does not hand out its last lines', { log: 2 }],
])('a command that has ended while the engine %s is told as it ended', async (_what, broken) => {
  const engine = await endsThenFails(3, broken)
  const said: string[] = []
  const onLog: RunOnceSpec['onLog'] = ({ text }) => said.push(text)
  const result = await engine.runOnce({ ...spec, onLog, patience_ms: PATIENCE_MS }, calm)
  expect(result).toMatchObject({ exit_code: 3, oom_killed: false, timed_out: false })
  expect(said).toEqual(['migrated'])
})
test('whoever has no patience with the engine hears at once that it is not known how a command ended', async () => {
  const engine = await endsThenFails(3, { asked: 100 })
  await expect(engine.runOnce(spec, calm)).rejects.toMatchObject({ code: 'unavailable' })
})
test('who stops waiting for an engine that does not tell how a command ended is let go', async () => {
  const engine = await endsThenFails(3, { asked: 1000 })
  const stop = new AbortController()
  const run = engine.runOnce(
    { ...spec, patience_ms: PATIENCE_MS, onStarted: () => setImmediate(() => stop.abort()) },
    stop.signal,
  )
  await expect(run).rejects.toMatchObject({ code: 'aborted' })
})

test('commands that an earlier process left go, and neither those under way nor anything else', async () => {
  const mark = { 'portreeve.managed': 'true', 'portreeve.installation': 'mine', 'portreeve.release': 'rel_a' }
  const containers = [
    { Id: 'left', Names: ['/rel_a-exec-1'], Labels: { ...mark, 'portreeve.run': 'exec-1' } },
    { Id: 'under-way', Names: ['/rel_a-release'], Labels: { ...mark, 'portreeve.run': 'release' } },
    { Id: 'instance', Names: ['/rel_a-0'], Labels: { ...mark, 'portreeve.run': '', 'portreeve.index': '0' } },
  ]
  const removed: string[] = []
  const server = await createEngineStandIn(({ method, path }, response) => {
    if (path === '/containers/json') return json(response, containers)
    if (path === '/containers/create') return json(response, { Id: 'c1' }, 201)
    // The command under way does not end.
    if (path.endsWith('/wait')) return
    if (path.endsWith('/json')) return json(response, { message: 'no such container' }, 404)
    if (method === 'DELETE') removed.push(path.split('/').at(-1)!)
    response.writeHead(204).end()
  })
  const engine = createDockerEngine({
    docker_host: server.docker_host,
    installation: 'mine',
    builder: 'classic',
  })
  close = async () => {
    await engine.close()
    await server.close()
  }
  const stop = new AbortController()
  const started = Promise.withResolvers<void>()
  const running = engine.runOnce({ ...spec, onStarted: started.resolve }, stop.signal).catch(() => {})
  await started.promise
  await engine.removeLeftRuns()
  expect(removed).toEqual(['left'])
  stop.abort()
  await running
  removed.length = 0
  await engine.removeLeftRuns()
  expect(removed.sort()).toEqual(['left', 'under-way'])
})
