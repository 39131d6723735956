import { machine } from 'node:os'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ClusterError, type NodeFacts } from '#server/platform/cluster/cluster'
import { createTestApi, type TestApi } from '#test/support/api'
import { addKey, joinServer, nodeEvents } from './harness.ts'

const ADDRESS = '10.9.8.7'
let api: TestApi
let ssh_key_id: string
const post = (body: object = {}) =>
  api.as('admin').post('/api/nodes', {
    address: ADDRESS,
    ssh_key_id,
    host_key: api.fakes.cluster.addServer(ADDRESS).facts.host_key,
    ...body,
  })
const one = async (id: string) => (await api.as('admin').get(`/api/nodes/${id}`)).body.data
/** Posts for a server of which this is so. */
function postFor(facts: Partial<NodeFacts>, body: object = {}) {
  const { host_key } = api.fakes.cluster.addServer(ADDRESS, facts).facts
  return api.as('admin').post('/api/nodes', { address: ADDRESS, ssh_key_id, host_key, ...body })
}

beforeEach(async () => {
  api = await createTestApi()
  ssh_key_id = await addKey(api)
})
afterEach(() => api.close())

describe('a server that is added', () => {
  it('shows its key first, and nothing is made until somebody has approved it', async () => {
    const { facts } = api.fakes.cluster.addServer(ADDRESS)
    const { status, body } = await api.as('admin').post('/api/nodes', { address: ADDRESS, ssh_key_id })
    expect([status, body.error.details]).toEqual([409, [{ path: 'host_key', message: facts.host_key }]])
    expect(body.error.message).toContain('ssh-keygen -lf')
    const other = `SHA256:${'0'.repeat(43)}`
    const wrong = await api.as('admin').post('/api/nodes', { address: ADDRESS, ssh_key_id, host_key: other })
    expect([wrong.status, wrong.body.error.message]).toEqual([
      409,
      expect.stringContaining('not the approved one'),
    ])
    expect((await api.as('admin').get('/api/nodes')).body.total).toBe(1)
    expect([nodeEvents(api), api.fakes.cluster.joined()]).toEqual([[], []])
  })
  it('is joined by a job, and shows then what it has', async () => {
    const { status, body } = await post({ name: 'worker-1' })
    expect([status, body.data]).toMatchObject([
      201,
      { name: 'worker-1', address: ADDRESS, role: 'worker', state: 'joining', availability: 'active' },
    ])
    await api.services.jobs.idle()
    const { id } = body.data
    expect(await one(id)).toMatchObject({
      state: 'ready',
      last_error: null,
      capacity: { cpus: 4 },
      use: { instances: 0, committed_memory_bytes: 0 },
      engine: { version: 'fake', os: 'linux' },
      ssh: { port: 22, user: 'root', ssh_key_id },
    })
    expect([api.fakes.cluster.joined(), api.fakes.cluster.used()]).toEqual([[id], [id]])
    expect(nodeEvents(api)).toEqual(['joining', 'ready'])
    const { data } = (await api.as('admin').get('/api/audit-logs?resource=node')).body
    expect(data.map(({ action }: any) => action)).toEqual(['node.create'])
    expect((await api.as('admin').get('/api/nodes?state=ready')).body.total).toBe(2)
  })
  it('is called as it calls itself when nobody says otherwise', async () => {
    const { body } = await postFor({ host_name: 'worker-9' })
    expect(body.data.name).toBe('worker-9')
  })
  it('tells administrators alone how it is logged in to', async () => {
    const { id } = await joinServer(api)
    const seen = (await api.as('viewer').get(`/api/nodes/${id}`)).body.data
    expect([seen.ssh, seen.state]).toEqual([null, 'ready'])
  })
  it.each<[string, Partial<NodeFacts>, RegExp]>([
    ['os', { can_install: false, os: 'Arch Linux' }, /runs Arch Linux.*Use Debian or Ubuntu/],
    ['machine', { machine: 'riscv64' }, /processor is riscv64/],
    ['disk', { disk_free_bytes: 4 * 1024 ** 3 }, /4\.0 GiB of its disk are free, and 5 GiB are needed/],
    ['memory', { memory_bytes: 256 * 1024 ** 2 }, /256 MiB of memory, and 512 MiB are needed/],
    ['clock', { clock_offset_ms: -42_000 }, /clock is 42 s behind/],
    ['ports', { taken_ports: [7946, 4789] }, /the ports 7946 and 4789/],
    ['user', { is_root: false }, /cannot become root without a password/],
    ['cluster', { in_cluster: true }, /part of another cluster/],
    ['portreeve', { has_portreeve: true }, /A Portreeve of its own/],
  ])('is refused with a sentence for its %s, and not touched', async (path, facts, sentence) => {
    const { status, body } = await postFor(facts)
    expect([status, body.error.details]).toEqual([409, [{ path, message: expect.stringMatching(sentence) }]])
    expect(body.error.message).toMatch(sentence)
    expect([nodeEvents(api), (await api.as('admin').get('/api/nodes')).body.total]).toEqual([[], 1])
  })
  it('hears of all that speaks against it at once', async () => {
    const { body } = await postFor({ machine: `not ${machine()}`, is_root: false, disk_free_bytes: 0 })
    expect(body.error.details.map(({ path }: any) => path)).toEqual(['machine', 'disk', 'user'])
  })
  it('needs no package manager that is known where an engine answers already', async () => {
    expect((await postFor({ can_install: false, engine_version: '28.0.1' })).status).toBe(201)
  })
  it('is none that is this one, that has no such address, or that is there already', async () => {
    for (const address of ['127.0.0.1', 'localhost', '169.254.169.254', '::1', '0.0.0.0'])
      expect([address, (await post({ address })).status]).toEqual([address, 422])
    const unknown = await post({ ssh_key_id: 'ssh_unknown' })
    expect([unknown.status, unknown.body.error.message]).toEqual([
      422,
      expect.stringMatching(/^ssh_key_id: is no key/),
    ])
    await post({ name: 'worker-1' })
    const twice = await post()
    expect([twice.status, twice.body.error.message]).toEqual([
      409,
      expect.stringContaining('there already, as worker-1'),
    ])
    const address = '10.9.8.8'
    const { host_key } = api.fakes.cluster.addServer(address).facts
    const named = await post({ address, host_key, name: 'worker-1' })
    expect([named.status, named.body.error.message]).toEqual([
      409,
      expect.stringContaining('named worker-1 already'),
    ])
  })
  it('that does not answer, or lets nobody in, is told by the field that it may be', async () => {
    const silent = await post({ address: '10.9.8.99' })
    expect([silent.status, silent.body.error.details[0].path]).toEqual([409, 'address'])
    api.fakes.cluster.addServer(ADDRESS).user = 'deploy'
    const { facts } = api.fakes.cluster.addServer(ADDRESS)
    api.fakes.cluster.failNext('inspect', new ClusterError('denied', 'The key was refused.'))
    const denied = await api
      .as('admin')
      .post('/api/nodes', { address: ADDRESS, ssh_key_id, host_key: facts.host_key })
    expect([denied.status, denied.body.error.details]).toEqual([
      409,
      [{ path: 'ssh_key_id', message: 'The key was refused.' }],
    ])
  })
})

describe('a join that fails', () => {
  const FULL = new ClusterError('failed', 'The engine could not be installed.', { hint: 'Free its disk.' })
  it('says why, and leaves no member', async () => {
    api.fakes.cluster.failNext('installEngine', FULL)
    const { id } = (await post()).body.data
    await api.services.jobs.idle()
    expect(await one(id)).toMatchObject({
      state: 'failed',
      last_error: 'The engine could not be installed. Free its disk.',
    })
    expect(nodeEvents(api)).toEqual(['joining', 'failed'])
    expect([api.fakes.cluster.joined(), api.fakes.cluster.used()]).toEqual([[], []])
  })
  it('after it had joined makes the server leave again', async () => {
    const { host_key } = api.fakes.cluster.addServer(ADDRESS).facts
    const read = api.fakes.cluster.read
    api.fakes.cluster.read = () => Promise.reject(new ClusterError('denied', 'The login ended.'))
    const body = { address: ADDRESS, ssh_key_id, host_key }
    const { id } = (await api.as('admin').post('/api/nodes', body)).body.data
    await api.services.jobs.idle()
    api.fakes.cluster.read = read
    expect(await one(id)).toMatchObject({ state: 'failed', last_error: 'The login ended.' })
    expect([api.fakes.cluster.joined(), api.fakes.cluster.used()]).toEqual([[], []])
  })
  it('is tried again by the same request, as the same server', async () => {
    api.fakes.cluster.failNext('join', FULL)
    const { id } = (await post({ name: 'worker-1' })).body.data
    await api.services.jobs.idle()
    const again = await post()
    expect([again.status, again.body.data]).toMatchObject([201, { id, name: 'worker-1', state: 'joining' }])
    await api.services.jobs.idle()
    expect(await one(id)).toMatchObject({ state: 'ready', last_error: null })
  })
  it('can be deleted', async () => {
    api.fakes.cluster.failNext('join', FULL)
    const { id } = (await post()).body.data
    await api.services.jobs.idle()
    expect((await api.as('admin').delete(`/api/nodes/${id}`)).body.data).toEqual({ id, deleted: true })
    await api.services.jobs.idle()
    expect((await api.as('admin').get(`/api/nodes/${id}`)).status).toBe(404)
    expect(nodeEvents(api).slice(-2)).toEqual(['removing', 'removed'])
  })
})

describe('an SSH key that a server is logged in to with', () => {
  it('cannot be deleted while the server is there', async () => {
    const { id } = await joinServer(api)
    const { ssh } = await one(id)
    const refused = await api.as('owner').delete(`/api/ssh-keys/${ssh.ssh_key_id}`)
    expect([refused.status, refused.body.error.message]).toEqual([
      409,
      expect.stringContaining('the server at-10.9.8.7'),
    ])
    await api.as('admin').delete(`/api/nodes/${id}`)
    await api.services.jobs.idle()
    expect((await api.as('owner').delete(`/api/ssh-keys/${ssh.ssh_key_id}`)).status).toBe(200)
  })
})
