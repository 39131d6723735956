import { afterAll, describe, expect, test } from 'vitest'
import { createDockerEngine } from '#server/platform/engine/docker'
import type { ContainerSpec, Workload } from '#server/platform/engine/workload'
import { ALLOWED_KEYS, keysOf } from '#test/support/engine-requests'
import { createEngineStandIn, json, type SeenRequest } from '#test/support/engine-stand-in'

const PATHS = [
  /^POST \/containers\/create$/,
  /^POST \/containers\/[^/]+\/(start|stop|wait|update|pause|unpause)$/,
  /^DELETE \/containers\/(c1|c2|rel_[a-z]*-(0|1|task))$/,
  /^(GET|HEAD|PUT) \/containers\/c2\/archive$/,
  /^POST \/containers\/c\/exec$/,
  /^POST \/exec\/x\/start$/,
  /^POST \/volumes\/create$/,
  /^(GET|DELETE) \/volumes\/vol_x$/,
  /^POST \/networks\/create$/,
  /^DELETE \/networks\/[^/]+$/,
  /^POST \/build$/,
  /^POST \/build\/cancel$/,
  /^POST \/images\/create$/,
  /^DELETE \/images\/[^?]+$/,
  /^POST \/session$/,
  /^GET \/(version|info|system\/df|exec\/x\/json|events|networks|containers\/json|containers\/[^/]+\/(json|logs|stats)|images\/json|images\/.+\/json)$/,
]
const BUILD_PARAMETERS = [
  't',
  'target',
  'nocache',
  'rm',
  'forcerm',
  'pull',
  'labels',
  'buildargs',
  'version',
  'dockerfile',
  'memory',
  'memswap',
  'cpuperiod',
  'cpuquota',
  'remote',
  'session',
  'buildid',
]

const HOSTILE = [
  '..',
  '.',
  '../../containers/c9',
  '../containers/c9/start',
  '"; touch /x',
  '$(id)',
  '../../containers/create',
  '{"Privileged":true}',
  'a\nb',
  'HostConfig',
  '__proto__',
  '-v /:/host',
  '%2e%2e/',
  '?x=1&HostConfig=1',
  '',
]

/**
 * A spec of hostile values with hostile fields that no type allows: the caller may be wrong, the request may
 * not.
 */
function hostileSpec(text: string, volume_id = text): Workload {
  const beyond = {
    Privileged: true,
    hostconfig: { privileged: true, pidmode: 'host' },
    HostConfig: { Binds: ['/:/host'] },
    Binds: ['/:/host'],
    mounts: [{ Type: 'bind' }],
    devices: ['/dev/sda'],
    user: 'root',
    cap_add: ['SYS_ADMIN'],
    Sysctls: { x: '1' },
    Runtime: 'x',
    CgroupParent: '/',
    ExtraHosts: ['a:host-gateway'],
  }
  return {
    ...beyond,
    owner: { kind: 'app', id: text },
    project_id: text,
    release_id: `rel_${text.replace(/[^a-z]/g, '')}`,
    image: text || 'x',
    environment: { [text || 'E']: text },
    mounts: [
      { kind: 'file', path: `/etc/${text}`, content: text, mode: 0o644 },
      {
        kind: 'volume',
        volume_id,
        path: text,
        read_only: false,
        ...{ DriverConfig: { Name: 'local', Options: { o: 'bind' } }, Type: 'bind' },
      },
      { kind: 'memory', path: `/run/${text}`, size_bytes: 4096, ...{ Type: 'bind', options: 'exec,suid' } },
    ],
    entrypoint: [text],
    working_dir: `/${text}`,
    read_only: true,
    network: 'net',
    aliases: [text],
    limits: { cpus: 1, memory_bytes: 1e8, pids: 10, ...{ Memory: 0, OomKillDisable: true } },
    stop_grace_s: 1,
    probe: { type: 'none', grace_s: 1 },
    placement: { node: 'local' },
    replicas: 1,
    update: 'start_first',
  } as ContainerSpec as Workload
}

const server = await createEngineStandIn(({ method, path }, response) => {
  if (path === '/containers/json' || path === '/images/json')
    return json(
      response,
      method === 'GET' && path.startsWith('/containers') ? [{ Id: 'c1', Labels: {}, ImageID: 'i' }] : [],
    )
  if (path === '/networks') return json(response, [])
  if (path.endsWith('/logs')) return void response.end()
  if (path === '/build') return void response.end('{"aux":{"ID":"sha256:1"}}\n')
  if (path === '/images/create') return void response.end('{"status":"ok"}\n')
  if (path.startsWith('/containers/') && path.endsWith('/json') && method === 'GET')
    return json(response, { message: 'no such container' }, 404)
  if (path === '/containers/create') return json(response, { Id: 'c2' }, 201)
  if (path.startsWith('/volumes/'))
    return json(response, {
      Name: 'vol_x',
      Labels: { 'portreeve.managed': 'true', 'portreeve.installation': 'default' },
    })
  json(response, { Id: 'x', RepoTags: ['t:1'] })
})
const engine = createDockerEngine({ docker_host: server.docker_host, builder: 'classic' })
const calm = new AbortController().signal

async function driveEverything(): Promise<void> {
  for (const text of HOSTILE) {
    const spec = hostileSpec(text, 'vol_x')
    const ports = [{ container_port: 80, host_port: 20_000, protocol: 'tcp' as const, ...{ HostIp: text } }]
    const tries = [
      () => engine.ensureNetwork(text || 'n', { [text]: text }),
      () => engine.ensureRelease({ ...spec, replicas: 2, command: [text] }, calm),
      () => engine.ensureRelease({ ...spec, ports, shell_command: text }, calm),
      () => engine.ensureRelease(hostileSpec(text), calm),
      () => engine.ensureVolume(text, { [text]: text }),
      () => engine.ensureVolume('vol_x', { [text]: text }),
      () => engine.removeVolume(text),
      () => engine.volumeUsage(),
      () =>
        engine.exec(
          'c',
          {
            command: [text],
            environment: { [text]: text },
            user: text,
            ...{ Privileged: true, WorkingDir: '/' },
          },
          calm,
        ),
      () => engine.runOnce({ ...spec, purpose: 'task', timeout_ms: 1_000, onLog: () => {} }, calm),
      () =>
        engine.buildImage(
          {
            context: import.meta.dirname,
            dockerfile: text,
            tag: text,
            labels: { [text]: text },
            build_args: { [text]: text },
            secrets: {},
            no_cache: false,
            cache_scope: 'prj_test',
            target: text,
            limits: { cpus: 1, memory_bytes: 1e8, timeout_ms: 5_000 },
            onLog: () => {},
            ...{ networkmode: 'host', extrahosts: 'x', cgroupparent: '/' },
          },
          calm,
        ),
      () =>
        engine.pullImage(
          text || 'x',
          { onLog: () => {}, auth: { username: text, password: text, server: text } },
          calm,
        ),
      () => engine.removeImage(text || 'x'),
      () => engine.findImage(text),
      () => engine.logs(text, {})[Symbol.asyncIterator]().next(),
      () => engine.removeNetwork(text),
      () => engine.superviseRelease(text, true),
      () => engine.pauseRelease(text, true),
      () => engine.removeRelease(text, 1),
      () => engine.removeLabelled({ [text]: text }),
      () => engine.stats(text || 'x'),
    ]
    for (const attempt of tries) await attempt().catch(() => {})
  }
}
await driveEverything()
afterAll(async () => {
  await engine.close()
  await server.close()
})

describe('whatever callers pass, the requests to the engine', () => {
  const bodies = (): [SeenRequest, unknown][] =>
    server.seen.filter(({ body }) => body !== '').map((request) => [request, JSON.parse(request.body)])

  test('have bodies of allowed keys only, in any spelling and at any depth', () => {
    expect(bodies().length).toBeGreaterThan(50)
    const unknown = bodies()
      .flatMap(([, body]) => keysOf(body))
      .filter((key) => !ALLOWED_KEYS.has(key))
    expect([...new Set(unknown)]).toEqual([])
  })

  test('go to known paths only: a value never becomes a part of the path', () => {
    const unknown = server.seen
      .map(({ method, path }) => `${method} ${path}`)
      .filter((line) => !PATHS.some((path) => path.test(line)))
    expect([...new Set(unknown)]).toEqual([])
  })

  test('create containers that are held to the fixed values', () => {
    const creates = bodies()
      .filter(([{ path }]) => path === '/containers/create')
      .map(([, body]) => body as { HostConfig: Record<string, unknown> })
    expect(creates.length).toBeGreaterThan(20)
    for (const { HostConfig } of creates) {
      for (const options of Object.values(HostConfig.Tmpfs ?? {}))
        expect(options).toBe('rw,exec,nosuid,nodev,size=4096')
      expect(HostConfig).toMatchObject({
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges'],
        Init: true,
        Memory: 1e8,
        MemorySwap: 1e8,
        NanoCpus: 1e9,
        PidsLimit: 10,
        NetworkMode: 'net',
        RestartPolicy: { Name: 'no' },
        LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } },
      })
    }
  })

  test('mount volumes by the ids that we give them, and nothing else', () => {
    const mounts = bodies()
      .filter(([{ path }]) => path === '/containers/create')
      .flatMap(([, body]) => (body as { HostConfig: { Mounts?: object[] } }).HostConfig.Mounts ?? [])
    expect(mounts.length).toBeGreaterThan(20)
    for (const mount of mounts) expect(mount).toMatchObject({ Type: 'volume', Source: 'vol_x' })
  })

  test('build with known parameters only', () => {
    const builds = server.seen.filter(({ path }) => path === '/build')
    expect(builds.length).toBeGreaterThan(5)
    expect(
      builds.flatMap(({ query }) => [...query.keys()]).filter((key) => !BUILD_PARAMETERS.includes(key)),
    ).toEqual([])
    for (const { query } of builds) expect(query.get('memory')).toBe(query.get('memswap'))
  })

  test('carry our labels below our prefix only', () => {
    const labels = bodies().flatMap(([, body]) => Object.keys((body as { Labels?: object }).Labels ?? {}))
    expect(labels.filter((label) => !label.startsWith('portreeve.'))).toEqual([])
  })
})
