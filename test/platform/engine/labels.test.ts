import { afterEach, describe, expect, test } from 'vitest'
import { createDockerEngine } from '#server/platform/engine/docker'
import { createEngineStandIn, json } from '#test/support/engine-stand-in'
import { testWorkload } from '#test/support/workload'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})
const calm = new AbortController().signal

type Labels = Record<string, string>
const carries = (labels: Labels, filters: string) =>
  (JSON.parse(filters) as { label: string[] }).label.every((wanted) => {
    const [, key = '', value] = /^([^=]+)(?:=(.*))?$/s.exec(wanted)!
    return value === undefined ? key in labels : labels[key] === value
  })

/** An engine whose only image brings labels along: a container has each that its request does not name. */
async function engineWith(of_image: Labels) {
  const containers = new Map<string, Labels>()
  const info = (name: string) => ({
    Id: name,
    Name: `/${name}`,
    Image: 'sha256:1',
    RestartCount: 0,
    State: { Status: 'running', Running: true, ExitCode: 0, OOMKilled: false, StartedAt: '', FinishedAt: '' },
    Config: { Labels: containers.get(name), Tty: false },
    HostConfig: {},
    NetworkSettings: { Networks: { net: { IPAddress: '10.0.0.2' } } },
  })
  let whenWaited = (): void => {}
  const server = await createEngineStandIn(({ method, path, query, body }, response) => {
    const name = path.split('/')[2]!
    if (path === '/containers/create') {
      const { Labels: asked } = JSON.parse(body) as { Labels: Labels }
      containers.set(query.get('name')!, { ...of_image, ...asked })
      return json(response, { Id: query.get('name') }, 201)
    }
    if (path === '/containers/json') {
      const found = [...containers].filter(([, labels]) => carries(labels, query.get('filters')!))
      return json(
        response,
        found.map(([Id, Labels]) => ({
          Id,
          Names: [`/${Id}`],
          Labels,
          ImageID: 'sha256:1',
          State: 'running',
        })),
      )
    }
    if (path === '/networks') return json(response, [])
    if (path.endsWith('/logs')) return void response.end()
    if (path.endsWith('/wait')) {
      whenWaited()
      return
    }
    if (path.startsWith('/containers/') && path.endsWith('/json'))
      return containers.has(name) ? json(response, info(name)) : json(response, { message: 'none' }, 404)
    if (method === 'DELETE') containers.delete(name)
    json(response, {})
  })
  const engine = createDockerEngine({ docker_host: server.docker_host })
  closing.push(engine.close, server.close)
  return {
    engine,
    /** Resolves once a one-off command runs. */
    waited: () => new Promise<void>((resolve) => (whenWaited = resolve)),
  }
}

describe('labels that an image brings along under names of ours', () => {
  const foreign = { 'portreeve.database': 'db_other', 'portreeve.process': 'worker', 'portreeve.index': '0' }

  test('make an instance of an app no instance of somebody else, nor of another process', async () => {
    const { engine } = await engineWith(foreign)
    const workload = testWorkload({ image: 'x', network: 'net' })
    await engine.ensureRelease(workload, calm)
    expect(await engine.instances({ owner: { kind: 'database', id: 'db_other' } })).toEqual([])
    expect(await engine.instances({ owner: workload.owner })).toMatchObject([
      { owner: workload.owner, process: 'web', index: 0 },
    ])
  })

  test('make a task no instance of an app', async () => {
    const { engine } = await engineWith({ 'portreeve.app': 'app_other' })
    const owner = { kind: 'task' as const, id: 'tsk_1' }
    await engine.ensureRelease(testWorkload({ image: 'x', network: 'net', owner }), calm)
    expect(await engine.instances({ owner: { kind: 'app', id: 'app_other' } })).toEqual([])
    expect((await engine.runningInstances()).map((instance) => instance.owner)).toEqual([owner])
  })

  test('make a command beside an app no instance of it', async () => {
    const { engine, waited } = await engineWith(foreign)
    const { replicas: _, ...spec } = testWorkload({ image: 'x', network: 'net' })
    const stop = new AbortController()
    const begun = waited()
    const running = engine.runOnce(
      { ...spec, purpose: 'task', timeout_ms: 60_000, onLog: () => {} },
      stop.signal,
    )
    running.catch(() => {})
    await begun
    expect(await engine.instances({ owner: spec.owner })).toEqual([])
    expect(await engine.runningInstances()).toEqual([])
    stop.abort()
    await running.catch(() => {})
  })
})
