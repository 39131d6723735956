import type { ServerResponse } from 'node:http'
import { afterEach, expect, test } from 'vitest'
import { pack } from 'tar-stream'
import { createDockerEngine } from '#server/platform/engine/docker'
import type { Workload } from '#server/platform/engine/workload'
import { createEngineStandIn, json } from '#test/support/engine-stand-in'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const USERS = 'root:x:0:0::/root:/bin/sh\napp:x:1234:1234::/:/bin/sh\n'
const HUGE_BYTES = 8 * 1024 ** 3

/** Sends a file of this size that begins with a text, for as long as somebody reads it; counts what was sent. */
function sendFile(response: ServerResponse, text: string, size: number, sent: (bytes: number) => void): void {
  const archive = pack()
  const entry = archive.entry({ name: 'passwd', size })
  entry.on('error', () => {})
  const line = Buffer.alloc(64 * 1024, '\n')
  let left = size - text.length
  const more = (): void => {
    while (left > 0 && !response.destroyed) {
      const part = line.subarray(0, Math.min(left, line.length))
      left -= part.length
      if (!entry.write(part)) return void entry.once('drain', more)
    }
    if (!response.destroyed) entry.end(Buffer.alloc(0))
  }
  archive.on('data', (chunk) => sent((chunk as Buffer).length))
  // Whoever has read enough hangs up.
  archive.on('error', () => {})
  archive.pipe(response)
  entry.write(text)
  more()
}

/** Begins an archive and breaks off, as an engine does that is started anew. */
function breakOff(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/x-tar' }).write(Buffer.alloc(100, 'p'))
  setImmediate(() => response.destroy())
}

/** An engine that has one container, whose image has this list of users. */
async function startWith(users: string | undefined, size = users?.length ?? 0) {
  let read_bytes = 0
  const server = await createEngineStandIn(({ method, path, query }, response) => {
    const labels = { 'portreeve.managed': 'true', 'portreeve.installation': 'default' }
    if (path.startsWith('/volumes/')) return json(response, { Name: 'vol_x', Labels: labels })
    if (path === '/containers/create') return json(response, { Id: 'c1' }, 201)
    if (path === '/containers/c1/json')
      return json(response, {
        Id: 'c1',
        Name: '/c1',
        Image: 'i',
        Config: { User: 'app', Labels: labels },
        State: { Status: 'running', Running: true },
        HostConfig: {},
        NetworkSettings: { Networks: {} },
      })
    if (path.startsWith('/containers/') && path.endsWith('/archive') && method === 'GET') {
      if (query.get('path') === '/etc/passwd' && users === undefined) return breakOff(response)
      if (query.get('path') === '/etc/passwd')
        return sendFile(response, users ?? '', size, (bytes) => (read_bytes += bytes))
      return json(response, { message: 'no such path' }, 404)
    }
    if (path.startsWith('/containers/') && path.endsWith('/json') && method === 'GET')
      return json(
        response,
        path === '/containers/json' ? [] : { message: 'none' },
        path === '/containers/json' ? 200 : 404,
      )
    if (path === '/networks') return json(response, [])
    json(response, {})
  })
  const engine = createDockerEngine({ docker_host: server.docker_host })
  closing.push(engine.close, server.close)
  const spec: Workload = {
    owner: { kind: 'app', id: 'app_x' },
    project_id: 'prj_x',
    release_id: 'rel_x',
    image: 'i',
    environment: {},
    mounts: [{ kind: 'file', path: '/etc/x', content: 'text', mode: 0o644 }],
    network: 'net',
    limits: { cpus: 1, memory_bytes: 1e8, pids: 10 },
    stop_grace_s: 1,
    probe: { type: 'none', grace_s: 1 },
    placement: { node: 'local' },
    replicas: 1,
    update: 'start_first',
  }
  const started = await engine.ensureRelease(spec, new AbortController().signal)
  return { started, read_bytes: () => read_bytes }
}

test('a container starts with its files when its image has an ordinary list of users', async () => {
  const { started, read_bytes } = await startWith(USERS)
  expect(started).toHaveLength(1)
  expect(read_bytes()).toBeLessThan(8 * 1024)
})

test('of a list of users only the beginning is read, however long an image makes it', async () => {
  const { started, read_bytes } = await startWith('root:x:0:0::/root:/bin/sh\n', HUGE_BYTES)
  expect(started).toHaveLength(1)
  expect(read_bytes()).toBeLessThan(32 * 1024 ** 2)
})

test('a start whose engine breaks off while it is asked for a file fails and does not wait for ever', async () => {
  await expect(startWith(undefined)).rejects.toMatchObject({ code: 'unavailable' })
})
