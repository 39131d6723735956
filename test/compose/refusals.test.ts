import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDockerEngine } from '#server/platform/engine/docker'
import type { Workload } from '#server/platform/engine/workload'
import { createTestApi, type TestApi } from '#test/support/api'
import { ALLOWED_KEYS, keysOf } from '#test/support/engine-requests'
import { createEngineStandIn, json } from '#test/support/engine-stand-in'

const URL = 'https://git.example.com/team/stack.git'
const web = (lines: object) => ({
  services: { web: { image: 'nginx:1.29', healthcheck: { test: ['CMD', 'true'] }, ...lines } },
})

/** What security.md 2.9 names as never given, as a compose file asks for it; the path of what is refused. */
const NEVER: [path: string, file: object][] = [
  ['services.web.privileged', web({ privileged: true })],
  ['services.web.network_mode', web({ network_mode: 'host' })],
  ['services.web.network_mode', web({ network_mode: 'container:portreeve-edge' })],
  ['services.web.pid', web({ pid: 'host' })],
  ['services.web.ipc', web({ ipc: 'host' })],
  ['services.web.uts', web({ uts: 'host' })],
  ['services.web.userns_mode', web({ userns_mode: 'host' })],
  ['services.web.cgroup', web({ cgroup: 'host' })],
  ['services.web.cgroup_parent', web({ cgroup_parent: '/' })],
  ['services.web.devices', web({ devices: ['/dev/sda:/dev/sda'] })],
  ['services.web.device_cgroup_rules', web({ device_cgroup_rules: ['c 1:3 rwm'] })],
  ['services.web.gpus', web({ gpus: 'all' })],
  ['services.web.cap_add', web({ cap_add: ['SYS_ADMIN'] })],
  ['services.web.security_opt', web({ security_opt: ['apparmor:unconfined'] })],
  ['services.web.sysctls', web({ sysctls: { 'kernel.msgmax': 1 } })],
  ['services.web.volumes_from', web({ volumes_from: ['container:portreeve-edge'] })],
  ['services.web.external_links', web({ external_links: ['other'] })],
  ['services.web.extra_hosts', web({ extra_hosts: ['host:host-gateway'] })],
  ['services.web.group_add', web({ group_add: ['docker'] })],
  ['services.web.runtime', web({ runtime: 'kata' })],
  ['services.web.oom_score_adj', web({ oom_score_adj: -1000 })],
  ['services.web.storage_opt', web({ storage_opt: { size: '1G' } })],
  ['services.web.use_api_socket', web({ use_api_socket: true })],
  ['services.web.volumes.0', web({ volumes: ['/:/host'] })],
  ['services.web.volumes.0', web({ volumes: ['/var/run/docker.sock:/docker.sock'] })],
  ['services.web.volumes.0', web({ volumes: ['../../other:/other'] })],
  ['services.web.volumes.0', web({ volumes: [{ type: 'bind', source: '/etc', target: '/etc' }] })],
  ['services.web.volumes.0', web({ volumes: [{ type: 'npipe', source: 'x', target: '/x' }] })],
  ['services.web.volumes.0', web({ volumes: [{ type: 'cluster', source: 'x', target: '/x' }] })],
  ['services.web.build.privileged', web({ build: { context: '.', privileged: true } })],
  ['services.web.build.network', web({ build: { context: '.', network: 'host' } })],
  ['services.web.build.entitlements', web({ build: { context: '.', entitlements: ['security.insecure'] } })],
  [
    'volumes.data.driver_opts',
    { ...web({}), volumes: { data: { driver_opts: { o: 'bind', device: '/' } } } },
  ],
  ['volumes.data.external', { ...web({}), volumes: { data: { external: true } } }],
  ['secrets.key.external', { ...web({}), secrets: { key: { external: true } } }],
  ['secrets.key.file', { ...web({ secrets: ['key'] }), secrets: { key: { file: '/etc/shadow' } } }],
  ['configs.page.file', { ...web({ configs: ['page'] }), configs: { page: { file: '../../etc/passwd' } } }],
  ['include', { ...web({}), include: ['/etc/compose.yaml'] }],
  ['services.web.extends', web({ extends: { file: '../other/compose.yaml', service: 'web' } })],
  ['services.web.env_file.0', web({ env_file: ['/etc/environment'] })],
  ['services.web.Privileged', web({ Privileged: true })],
  ['services.web.HostConfig', web({ HostConfig: { Binds: ['/:/host'] } })],
]
const hostile = NEVER.map(([path, file]) => [path, JSON.stringify(file)] as const)

let api: TestApi
let inline: string
let cloned: string
const call = () => api.as('developer')
const pathsOf = ({ body }: { body: any }) => body.error?.details?.map((one: { path: string }) => one.path)
const madeAt = (since: number) =>
  api.fakes.engine.calls
    .slice(since)
    .filter(({ method }) =>
      ['ensureRelease', 'runOnce', 'ensureVolume', 'buildImage', 'pullImage'].includes(method),
    )
const deploymentOf = async (id: string) => {
  const { body } = await call().post(`/api/apps/${id}/deploy`)
  await api.services.jobs.idle()
  return (await call().get(`/api/deployments/${body.data.id}`)).body.data
}
const commit = (files: Record<string, string>) =>
  api.fakes.git.commit(URL, 'main', files, JSON.stringify(files).slice(0, 60))
async function create(body: object): Promise<string> {
  const made = await call().post('/api/apps', { soak_seconds: 0, ...body })
  expect([made.status, made.body.error]).toEqual([201, undefined])
  await api.services.jobs.idle()
  return made.body.data.id
}

beforeAll(async () => {
  api = await createTestApi()
  inline = await create({ name: 'inline', compose: JSON.stringify(web({})) })
  commit({ 'compose.yaml': JSON.stringify(web({})) })
  cloned = await create({ name: 'cloned', git_url: URL, source: 'compose' })
})
afterAll(() => api.close())

it.each(hostile)('T3: %s is refused by every way in, before anything is made: %s', async (path, compose) => {
  const since = api.fakes.engine.calls.length
  const made = await call().post('/api/apps', { name: 'bad', compose })
  expect([made.status, pathsOf(made)]).toEqual([422, expect.arrayContaining([`compose.${path}`])])
  const changed = await call().put(`/api/apps/${inline}`, { compose })
  expect([changed.status, pathsOf(changed)]).toEqual([422, expect.arrayContaining([`compose.${path}`])])
  const template = {
    ...{ name: 'Bad', description: 'Asks for the host.', category: 'other', upgrade: 'Never.' },
    ...{
      links: { website: 'https://bad.example', source: 'https://bad.example' },
      minimum_memory_bytes: 1 << 26,
    },
  }
  const templates = [{ slug: 'bad', compose, template }]
  const added = await api.as('admin').post('/api/template-catalogs', { name: 'Bad', templates })
  expect([added.status, pathsOf(added)]).toEqual([
    422,
    expect.arrayContaining([`templates.0.compose.${path}`]),
  ])

  expect(madeAt(since)).toEqual([])
})

it.each(hostile.filter((_, index) => index % 8 === 0))(
  'T3: %s of a repository fails its deployment before anything is made',
  async (path, compose) => {
    const since = api.fakes.engine.calls.length
    commit({ 'compose.yaml': compose })
    const { status, error } = await deploymentOf(cloned)
    expect([status, error.code]).toEqual(['failed', 'compose_refused'])
    expect([error.message, ...error.log].join('\n')).toContain(path)
    expect(madeAt(since)).toEqual([])
  },
)

it('T3: a stack reaches no volume and no network of another project by any name', async () => {
  const { body: project } = await api.as('admin').post('/api/projects', { name: 'theirs' })
  const theirs = await api.as('admin').post('/api/apps', {
    ...{ name: 'ledger', project_id: project.data.id, soak_seconds: 0 },
    compose: JSON.stringify({ ...web({ volumes: ['books:/books'] }), volumes: { books: {} } }),
  })
  await api.services.jobs.idle()
  const volumesOf = async (as: 'admin' | 'developer') =>
    (await api.as(as).get('/api/volumes?per_page=100')).body.data.map(
      ({ id }: { id: string }) => id,
    ) as string[]
  const [secret] = (await volumesOf('admin')).filter((id) => api.fakes.engine.volumes().includes(id))
  const specOf = (app_id: string) =>
    api.fakes.engine.calls.findLast(
      ({ method, args }) => method === 'ensureRelease' && (args[0] as Workload).owner.id === app_id,
    )!.args[0] as Workload
  const their_network = specOf(theirs.body.data.id).network

  const names = ['books', 'ledger_books', secret!]
  const own = await create({
    name: 'thief',
    compose: JSON.stringify({
      ...web({ volumes: names.map((name) => `${name}:/${name}`), networks: [their_network] }),
      volumes: Object.fromEntries(names.map((name) => [name, { name: secret }])),
      networks: { [their_network]: { name: their_network } },
    }),
  })
  const { mounts, network } = specOf(own)
  const mounted = (mounts ?? []).map((mount) => (mount.kind === 'volume' ? mount.volume_id : mount.kind))
  expect(mounted).toHaveLength(names.length)
  expect(mounted).not.toContain(secret)
  expect(await volumesOf('developer')).toEqual(expect.arrayContaining(mounted))
  expect(network).not.toBe(their_network)
})

it('T3: what a stack of everything that is taken becomes is asked of the engine with allowed keys only', async () => {
  const since = api.fakes.engine.calls.length
  await create({
    name: 'everything',
    compose: JSON.stringify({
      ...web({
        ...{
          command: ['serve'],
          entrypoint: ['sh', '-c'],
          environment: { A: '1' },
          user: '1000',
          working_dir: '/srv',
        },
        ...{
          read_only: true,
          tmpfs: ['/tmp'],
          init: true,
          labels: { evil: '1' },
          hostname: 'x',
          expose: ['9000'],
        },
        ...{ ports: ['127.0.0.1:2375:2375'], privileged: false, stop_grace_period: '3s' },
        ...{
          configs: ['page'],
          secrets: ['key'],
          volumes: ['data:/data'],
          ulimits: { nofile: 9 },
          mem_limit: '64m',
        },
        deploy: { replicas: 1, labels: { evil: '1' }, resources: { limits: { cpus: '0.5', pids: 20 } } },
        healthcheck: { test: ['CMD', 'true'] },
      }),
      volumes: { data: { labels: { evil: '1' }, name: 'vol_other' } },
      configs: { page: { content: 'page' } },
      secrets: { key: { environment: 'SERVICE_HEX_KEY' } },
    }),
  })
  const specs = madeAt(since).flatMap(({ method, args }) =>
    method === 'ensureRelease' ? [args[0] as Workload] : [],
  )
  expect(specs).toHaveLength(1)
  const stand_in = await createEngineStandIn(({ method, path }, response) => {
    if (path === '/containers/create') return json(response, { Id: 'c2' }, 201)
    if (
      path.endsWith('/json') &&
      method === 'GET' &&
      path !== '/containers/json' &&
      path.startsWith('/containers/')
    )
      return json(response, { message: 'no such container' }, 404)
    if (path.startsWith('/volumes/'))
      return json(response, { Labels: { 'portreeve.managed': 'true', 'portreeve.installation': 'default' } })
    return json(response, path.endsWith('s') || path.endsWith('s/json') ? [] : { Id: 'x', RepoTags: ['t:1'] })
  })
  const engine = createDockerEngine({ docker_host: stand_in.docker_host, builder: 'classic' })
  for (const spec of specs) await engine.ensureRelease(spec, new AbortController().signal).catch(() => {})
  const bodies = stand_in.seen.flatMap(({ body }) => (body === '' ? [] : [JSON.parse(body)]))
  await engine.close()
  await stand_in.close()
  const created = bodies.find(({ HostConfig }) => HostConfig)
  expect(created.HostConfig.Mounts.map(({ Type }: { Type: string }) => Type)).toEqual(['volume'])
  expect(created.HostConfig).not.toHaveProperty('PortBindings')
  expect(Object.keys(created.Labels).filter((label) => !label.startsWith('portreeve.'))).toEqual([])
  expect(bodies.flatMap((body) => keysOf(body)).filter((key) => !ALLOWED_KEYS.has(key))).toEqual([])
})
