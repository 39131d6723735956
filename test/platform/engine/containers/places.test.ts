import { afterEach, expect, test } from 'vitest'
import { createDockerEngine } from '#server/platform/engine/docker'
import type { Workload } from '#server/platform/engine/workload'
import { createEngineStandIn, json } from '#test/support/engine-stand-in'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const LABELS = { 'portreeve.managed': 'true', 'portreeve.installation': 'default' }
const volume = (Name: string, Destination: string, RW = true) => ({ Type: 'volume', Name, Destination, RW })
/** What the engine says of a path that is a link. */
const linkTo = (linkTarget: string) =>
  Buffer.from(JSON.stringify({ mode: 2 ** 27 + 0o777, linkTarget })).toString('base64')

interface Machine {
  /** Places of the two volumes in the container that is to start. */
  places: [outer: string, inner?: string]
  /** How another container has the outer one; none does without. */
  elsewhere?: 'rw' | 'ro'
  /** Links of the image, and of its volumes where they are mounted. */
  links?: Record<string, string>
  links_of_volumes?: Record<string, string>
  user?: string
}

/** Starts a container with two volumes on an engine; answers how that went, and which paths of it were touched. */
async function startOn({
  places: [outer, inner],
  elsewhere,
  links = {},
  links_of_volumes = {},
  user = 'app',
}: Machine) {
  const touched: string[] = []
  const server = await createEngineStandIn(({ method, path, query, body }, response) => {
    if (path.startsWith('/volumes/')) return json(response, { Name: 'vol_x', Labels: LABELS })
    if (path === '/containers/create') {
      const is_bare =
        (JSON.parse(body) as { HostConfig: { Mounts?: unknown } }).HostConfig.Mounts === undefined
      return json(response, { Id: is_bare ? 'bare' : 'c1' }, 201)
    }
    if (path === '/containers/c1/json')
      return json(response, {
        Id: 'c1',
        Name: '/c1',
        Image: 'sha256:i',
        Config: { User: user, Labels: LABELS },
        State: { Status: 'running', Running: true },
        HostConfig: {},
        Mounts: [volume('vol_a', outer), ...(inner ? [volume('vol_b', inner)] : [])],
        NetworkSettings: { Networks: {} },
      })
    const target = { ...(path.includes('/c1/') ? links_of_volumes : {}), ...links }[query.get('path') ?? '']
    if (path === '/containers/bare/archive' || (path === '/containers/c1/archive' && method === 'HEAD')) {
      return response.writeHead(200, target ? { 'x-docker-container-path-stat': linkTo(target) } : {}).end()
    }
    if (path === '/containers/c1/archive') {
      touched.push(`${method} ${query.get('path')}`)
      return json(response, { message: 'no such path' }, 404)
    }
    if (path.endsWith('/changes')) return json(response, [])
    if (path === '/containers/json' && query.get('filters')?.includes('"volume"'))
      return json(
        response,
        elsewhere ? [{ Id: 'c9', Mounts: [volume('vol_a', '/data', elsewhere === 'rw')] }] : [],
      )
    if (path === '/containers/json' || path === '/networks') return json(response, [])
    if (path.startsWith('/containers/') && method === 'GET') return json(response, { message: 'none' }, 404)
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
    mounts: [outer, inner]
      .filter((path) => path !== undefined)
      .map((path, at) => ({
        kind: 'volume',
        volume_id: at === 0 ? 'vol_a' : 'vol_b',
        path,
        read_only: false,
      })),
    network: 'net',
    limits: { cpus: 1, memory_bytes: 1e8, pids: 10 },
    stop_grace_s: 1,
    probe: { type: 'none', grace_s: 1 },
    placement: { node: 'local' },
    replicas: 1,
    update: 'start_first',
  }
  const outcome = await engine.ensureRelease(spec, AbortSignal.timeout(20_000)).then(
    () => 'started',
    (error: Error) => error.message,
  )
  const removed = server.seen.some(({ method, path }) => method === 'DELETE' && path === '/containers/bare')
  return { outcome, touched, removed }
}

test('the engine is not made to mount a volume within one that somebody else can change meanwhile', async () => {
  const { outcome, touched, removed } = await startOn({ places: ['/data', '/data/b'], elsewhere: 'rw' })
  expect(outcome).toContain('The volume at /data/b lies within the one at /data')
  expect(touched).toEqual([])
  expect(removed).toBe(true)
})

test('nor where only a link of the image leads into the other one', async () => {
  const links = { '/x': '/data', '/var': '/srv' }
  const { outcome, touched } = await startOn({ places: ['/data', '/x/b'], elsewhere: 'rw', links })
  expect(outcome).toContain('The volume at /x/b lies within the one at /data')
  expect(touched).toEqual([])
})

test.each<[string, Machine]>([
  ['nobody else has the outer one', { places: ['/data', '/data/b'] }],
  ['others only read the outer one', { places: ['/data', '/data/b'], elsewhere: 'ro' }],
  ['they lie side by side', { places: ['/data', '/data-b'], elsewhere: 'rw' }],
])('volumes are given to the user of the image where %s', async (_, machine) => {
  const { outcome, touched } = await startOn(machine)
  expect(outcome).toBe('started')
  expect(touched).toContain('GET /etc/passwd')
})

test('volumes within one another start where the engine has nothing to do with what is in them', async () => {
  const { outcome, touched } = await startOn({ places: ['/data', '/data/b'], elsewhere: 'rw', user: '' })
  expect([outcome, touched]).toEqual(['started', []])
})

test.each<[string, Machine]>([
  ['/dev', { places: ['/data'], links: { '/data': '/dev' } }],
  ['/dev', { places: ['/data'], links: { '/data': '/dev' }, user: '' }],
  ['/dev', { places: ['/a/dev'], links: { '/a': '/' }, user: '' }],
  ['/', { places: ['/data'], links: { '/data': '../..' }, user: '' }],
  ['/sys/fs/cgroup', { places: ['/data', '/b'], links: { '/b': '/sys/fs/cgroup' }, user: '' }],
  ['/dev', { places: ['/data', '/data/b'], links_of_volumes: { '/data/b': '/dev' }, user: '' }],
])('no volume takes the place of %s, whatever link of %j leads there', async (place, machine) => {
  const { outcome } = await startOn(machine)
  expect(outcome).toContain(`would take the place of ${place}, to which a link leads there`)
})

test('a volume of the image itself takes it no more than one that is mounted', async () => {
  const { outcome } = await startOn({ places: ['/dev'], user: '' })
  expect(outcome).toContain('would take the place of /dev')
})

test('shared memory may be a volume, and what a link leads to elsewhere', async () => {
  const { outcome } = await startOn({ places: ['/dev/shm', '/var/run'], links: { '/var/run': '/run' } })
  expect(outcome).toBe('started')
})
