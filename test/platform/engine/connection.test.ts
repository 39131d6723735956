import { once } from 'node:events'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, test } from 'vitest'
import { createConnection } from '#server/platform/engine/connection'
import { createDockerEngine } from '#server/platform/engine/docker'
import type { Engine } from '#server/platform/engine/engine'
import { createEngineStandIn, json, type StandInAnswer } from '#test/support/engine-stand-in'
import { testWorkload } from '#test/support/workload'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function standIn(answer: StandInAnswer) {
  const server = await createEngineStandIn(answer)
  const connection = createConnection(server.docker_host)
  closing.push(() => connection.close(), server.close)
  return { ...server, connection }
}

describe('a call', () => {
  test('that is not answered ends at its deadline as unavailable', async () => {
    const { connection } = await standIn(() => {})
    await expect(connection.call({ path: '/x', deadline_ms: 100 })).rejects.toMatchObject({
      code: 'unavailable',
      message: 'The container engine does not answer.',
    })
  })

  test('whose answer stops half-way ends at its deadline, too', async () => {
    const { connection } = await standIn((_, response) => {
      response.writeHead(200).write('{"half":')
    })
    await expect(connection.call({ path: '/x', deadline_ms: 100 })).rejects.toMatchObject({
      code: 'unavailable',
    })
  })

  test('to another machine ends, however much and however slowly that answers', async () => {
    const { docker_host } = await standIn(({ path }, response) => {
      response.writeHead(200).write('[')
      const say = (text: string) => {
        while (!response.closed)
          if (!response.write(text)) return void response.once('drain', () => say(text))
      }
      if (path === '/much') say('{},'.repeat(1000))
      if (path === '/long') say('x'.repeat(10_000))
      const drip = () => response.closed || response.write('{},', () => setImmediate(drip))
      if (path === '/slow') drip()
      ended.push(once(response, 'close'))
    })
    const ended: Promise<unknown>[] = []
    const socket = docker_host.slice('unix://'.length)
    const open = async () => connect(socket).on('error', () => {})
    const connection = createConnection({ open })
    closing.push(() => connection.close())
    const keep = (entry: unknown) => entry
    for (const path of ['/much', '/long'])
      for (const way of [{ path }, { path, keep }])
        await expect(connection.call(way)).rejects.toMatchObject({
          message: expect.stringContaining('too large'),
        })
    await expect(connection.call({ path: '/slow', keep, deadline_ms: 100 })).rejects.toMatchObject({
      code: 'unavailable',
    })
    // A slow machine may not have taken the last one yet when its time is over.
    await Promise.all(ended)
  })

  test('whose answer is read as it comes ends at its limit, where it has one', async () => {
    const { connection } = await standIn((_, response) => {
      response.writeHead(200).write('half')
    })
    const answer = await connection.stream({ path: '/x', whole_ms: 100 })
    await expect(text(answer)).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('whose answer ends before all was taken that it sends leaves nobody waiting to send the rest', async () => {
    const { connection } = await standIn((_, response) => void response.end('enough'))
    const upload = new Readable({ read: () => upload.push(Buffer.alloc(64 * 1024)) })
    const answer = await connection.stream({ method: 'POST', path: '/x', upload })
    const ended = once(upload, 'close')
    expect(await text(answer)).toBe('enough')
    await ended
    expect(upload.destroyed).toBe(true)
  })

  test('ends as aborted when its caller leaves, before and after it was sent', async () => {
    const { connection, seen } = await standIn(() => {})
    await expect(connection.call({ path: '/x', signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'aborted',
    })
    expect(seen).toEqual([])
    const stop = new AbortController()
    const calling = connection.call({ path: '/x', signal: stop.signal })
    stop.abort()
    await expect(calling).rejects.toMatchObject({ code: 'aborted' })
  })

  test('to an engine that is not there is unavailable and says what to do', async () => {
    for (const host of ['unix:///nonexistent/docker.sock', 'tcp://127.0.0.1:1']) {
      await expect(createConnection(host).call({ path: '/x' })).rejects.toMatchObject({
        code: 'unavailable',
        hint: expect.stringContaining('DOCKER_HOST'),
      })
    }
  })

  test('with an address that cannot be understood is refused in words', () => {
    for (const host of ['ssh://x', 'nonsense', 'tcp://'])
      expect(() => createConnection(host)).toThrow('DOCKER_HOST must look like')
  })

  test.each([
    [404, 'nothing here', 'not_found'],
    [409, 'in use', 'conflict'],
    [500, 'boom', 'failed'],
    [503, 'swarm', 'failed'],
    [400, 'bad parameter', 'failed'],
    [500, 'write /var/lib/docker/overlay2/x/y: no space left on device', 'disk_full'],
  ])('with status %i and "%s" becomes %s', async (status, message, code) => {
    const { connection } = await standIn((_, response) => json(response, { message }, status))
    await expect(connection.call({ path: '/x' })).rejects.toMatchObject({
      name: 'EngineError',
      code,
    })
  })

  test('does not show paths of the engine, line breaks or terminal sequences of its words', async () => {
    const { connection } = await standIn((_, response) =>
      json(response, { message: 'bad /var/lib/docker/overlay2/abc\n\u001b[31mred' }, 500),
    )
    await expect(connection.call({ path: '/x' })).rejects.toMatchObject({
      message: 'The container engine could not do this: bad … [31mred',
    })
  })

  test('that only reads is tried again when the connection breaks; one that changes something is not', async () => {
    let broken = 0
    const { connection, seen } = await standIn((_, response) => {
      if (broken++ % 2 === 0) return void response.destroy()
      json(response, { ok: true })
    })
    expect(await connection.call({ path: '/x' })).toEqual({ ok: true })
    expect(seen).toHaveLength(2)
    await expect(connection.call({ method: 'POST', path: '/x', body: { a: 1 } })).rejects.toMatchObject({
      code: 'unavailable',
    })
    expect(seen).toHaveLength(3)
  })

  test('whose answer is cut off or is no JSON is an error, never half an answer', async () => {
    const cut = await standIn((_, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('{"a":1}')
      response.destroy()
    })
    await expect(cut.connection.call({ path: '/x' })).rejects.toMatchObject({ code: 'unavailable' })
    const garbage = await standIn((_, response) => {
      response.end('<html>')
    })
    await expect(garbage.connection.call({ path: '/x' })).rejects.toMatchObject({
      code: 'failed',
      message: 'The container engine sent an answer that cannot be read.',
    })
  })

  test('sends its body as a body only, since addresses are logged', async () => {
    const { connection, seen } = await standIn((_, response) => json(response, {}))
    await connection.call({
      method: 'POST',
      path: '/x',
      query: { name: 'a&b' },
      body: { Env: ['SECRET=1'] },
    })
    expect([...seen[0]!.query]).toEqual([['name', 'a&b']])
    expect(JSON.parse(seen[0]!.body)).toEqual({ Env: ['SECRET=1'] })
  })
})

/** One call of every method that asks the engine something. */
const METHODS: Record<string, (engine: Engine) => Promise<unknown>> = {
  version: (engine) => engine.version(),
  ensureNetwork: (engine) => engine.ensureNetwork('n', {}),
  removeNetwork: (engine) => engine.removeNetwork('n'),
  buildImage: (engine) =>
    engine.buildImage(
      {
        context: import.meta.dirname,
        dockerfile: 'FROM x',
        tag: 't',
        labels: {},
        build_args: {},
        secrets: {},
        no_cache: false,
        cache_scope: 'prj_test',
        limits: { cpus: 1, memory_bytes: 1e8, timeout_ms: 9_000 },
        onLog: () => {},
      },
      new AbortController().signal,
    ),
  pullImage: (engine) => engine.pullImage('x:1', { onLog: () => {} }, new AbortController().signal),
  findImage: (engine) => engine.findImage('x:1'),
  listImages: (engine) => engine.listImages({}),
  removeImage: (engine) => engine.removeImage('x:1'),
  ensureRelease: (engine) => engine.ensureRelease(SPEC, new AbortController().signal),
  superviseRelease: (engine) => engine.superviseRelease('rel_x', true),
  pauseRelease: (engine) => engine.pauseRelease('rel_x', true),
  removeRelease: (engine) => engine.removeRelease('rel_x', 1),
  instances: (engine) => engine.instances({}),
  runningInstances: (engine) => engine.runningInstances(),
  runOnce: (engine) =>
    engine.runOnce(
      { ...SPEC, purpose: 'task', timeout_ms: 5_000, onLog: () => {} },
      new AbortController().signal,
    ),
  exec: (engine) => engine.exec('c', { command: ['true'] }, new AbortController().signal),
  ensureVolume: (engine) => engine.ensureVolume('vol_x', {}),
  findVolume: (engine) => engine.findVolume('vol_x'),
  removeVolume: (engine) => engine.removeVolume('vol_x'),
  volumeUsage: (engine) => engine.volumeUsage(),
  logs: (engine) => engine.logs('c', {})[Symbol.asyncIterator]().next(),
  stats: (engine) => engine.stats('c'),
  events: (engine) => engine.events(new AbortController().signal)[Symbol.asyncIterator]().next(),
  removeLabelled: (engine) => engine.removeLabelled({ app: 'x' }),
}
const SPEC = testWorkload({ release_id: 'rel_x', image: 'x:1', network: 'n' })
const FAULTS: Record<string, StandInAnswer> = {
  'status 500': (_, response) => json(response, { message: 'boom' }, 500),
  'a broken connection': (_, response) => void response.destroy(),
  'a truncated answer': (_, response) => {
    response.writeHead(200, { 'content-length': 1000 }).write('[{"Id":')
    response.destroy()
  },
  'something else than JSON': (_, response) => {
    response.end('<html>proxy error</html>')
  },
}

describe.each(Object.entries(FAULTS))('when the engine answers with %s', (_, fault) => {
  test.each(Object.entries(METHODS))('%s fails with an error of ours', async (_name, call) => {
    const server = await createEngineStandIn(fault)
    const engine = createDockerEngine({ docker_host: server.docker_host, builder: 'classic' })
    closing.push(engine.close, server.close)
    await expect(call(engine)).rejects.toMatchObject({
      name: 'EngineError',
      code: expect.stringMatching(/^(unavailable|failed)$/),
    })
  })
})

describe('streams', () => {
  const build = (engine: Engine) => METHODS.buildImage!(engine)
  async function engineWith(answer: StandInAnswer): Promise<Engine> {
    const server = await createEngineStandIn(answer)
    const engine = createDockerEngine({ docker_host: server.docker_host, builder: 'classic' })
    closing.push(engine.close, server.close)
    return engine
  }
  const lines =
    (...events: unknown[]): StandInAnswer =>
    (_, response) => {
      response.end(events.map((event) => `${JSON.stringify(event)}\n`).join(''))
    }

  test('a build that ends without an image id has failed, also without an error event', async () => {
    await expect(build(await engineWith(lines({ stream: 'Step 1/1 : FROM x\n' })))).rejects.toMatchObject({
      code: 'build_failed',
    })
  })

  test('a build with an error event has failed, also with an image id before it', async () => {
    await expect(
      build(
        await engineWith(
          lines(
            { aux: { ID: 'sha256:1' } },
            {
              errorDetail: { message: "The command '/bin/sh -c x' returned a non-zero code: 2" },
              error: 'x',
            },
          ),
        ),
      ),
    ).rejects.toMatchObject({
      code: 'build_failed',
      message: 'The command `x` failed with exit code 2.',
    })
  })

  test('a build whose answer is cut off is not a success', async () => {
    const engine = await engineWith((_, response) => {
      response.write('{"aux":{"ID":"sha256:1"}}\n')
      setImmediate(() => response.destroy())
    })
    await expect(build(engine)).rejects.toMatchObject({ code: 'unavailable' })
  })

  test.each([
    ['labels', { Labels: { a: 'x'.repeat(65_536) } }],
    ['variables', { Env: [`A=${'x'.repeat(262_144)}`] }],
    [
      'exposed ports',
      { ExposedPorts: Object.fromEntries(Array.from({ length: 1001 }, (_, port) => [`${port}/tcp`, {}])) },
    ],
    ['volumes', { Volumes: Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`/v${at}`, {}])) }],
  ])('an image with too many %s is refused, and gone before anybody lists it', async (what, Config) => {
    const removed: string[] = []
    const engine = await engineWith((request, response) => {
      if (request.path.endsWith('/build')) return void response.end('{"aux":{"ID":"sha256:1"}}\n')
      if (request.method === 'DELETE') removed.push(request.path)
      const image = { Id: 'sha256:1', RepoTags: ['shop:1'], RepoDigests: [], Size: 1, Created: '2026-01-01' }
      json(response, request.path.startsWith('/images/') ? { ...image, Config } : [])
    })
    await expect(build(engine)).rejects.toMatchObject({
      code: 'image_refused',
      message: expect.stringContaining(what),
    })
    expect(removed).toEqual(['/images/shop:1', '/images/sha256:1'])
  })

  test('the events tell a one-off command from an instance', async () => {
    const event = (label: Record<string, string>) => ({
      Action: 'die',
      Actor: {
        ID: 'a',
        Attributes: { 'portreeve.app': 'app_x', 'portreeve.release': 'rel_x', ...label },
      },
      time: 1,
    })
    const engine = await engineWith(
      lines(event({ 'portreeve.run': 'exec-1' }), event({ 'portreeve.index': '0' })),
    )
    const seen: unknown[] = []
    await expect(
      (async () => {
        for await (const one of engine.events(new AbortController().signal)) seen.push(one)
      })(),
    ).rejects.toMatchObject({ code: 'unavailable' })
    expect(seen).toMatchObject([{ release_id: 'rel_x', one_off: true }, { release_id: 'rel_x' }])
    expect(seen[1]).not.toHaveProperty('one_off')
  })

  test('the events end with an error when the engine goes away, and quietly when the reader leaves', async () => {
    const event = {
      Type: 'container',
      Action: 'die',
      Actor: { ID: 'c1', Attributes: { 'portreeve.app': 'app_x', exitCode: '3' } },
      timeNano: 1_700_000_000_123_000_000,
    }
    const away = await engineWith(lines(event))
    const seen: unknown[] = []
    await expect(
      (async () => {
        for await (const one of away.events(new AbortController().signal)) seen.push(one)
      })(),
    ).rejects.toMatchObject({ code: 'unavailable' })
    expect(seen).toEqual([
      {
        kind: 'die',
        instance_id: 'c1',
        owner: { kind: 'app', id: 'app_x' },
        exit_code: 3,
        at: '2023-11-14T22:13:20.123Z',
      },
    ])
    const stop = new AbortController()
    const open = await engineWith((_, response) => {
      response.write(`${JSON.stringify(event)}\n`)
    })
    for await (const _ of open.events(stop.signal)) stop.abort()
  })

  test.each([
    ["pull access denied for x, repository does not exist or may require 'docker login'", 'image_not_found'],
    ['manifest for x:1 not found: manifest unknown', 'image_not_found'],
    ['unauthorized: authentication required', 'image_denied'],
    ['Get "https://r/v2/": dial tcp: lookup r: no such host', 'image_not_found'],
    ['write /x: no space left on device', 'disk_full'],
  ])('a pull that reports "%s" fails as %s', async (message, code) => {
    await expect(
      METHODS.pullImage!(
        await engineWith(lines({ status: 'Pulling' }, { errorDetail: { message }, error: message })),
      ),
    ).rejects.toMatchObject({ code })
  })
})
