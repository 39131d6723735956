import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run } from '#server/kernel/process'
import { ALLOCATOR, NODE_ARGUMENTS } from '#server/start/process-arguments'
import { startMachines, STRICT_PORT } from '#test/support/cluster-machines'
import { BUSYBOX_IMAGE, ensureBusyboxImage } from '#test/support/engine-images'
import { canStartEngine } from '#test/support/own-engine'
import { ADMIN, docker, eventually } from '#test/support/portreeve'
import { ROOT } from '#test/support/routes'

const PORT = 8400
const EDGE_PORT = 8480
const EDGE_IMAGE = 'haproxy:3.0-trixie'
const CLIENT = join(ROOT, '.output/portreeve-client.mjs')
const ENTRY = process.env.PORTREEVE_ENTRY ?? join(ROOT, '.output/server/index.mjs')

describe.skipIf(!canStartEngine)('a second server', () => {
  let machines: Awaited<ReturnType<typeof startMachines>>
  let server: ChildProcess
  let data_directory: string
  let token = ''
  let node_id: string
  const apps: Record<string, string> = {}

  /** What a program in the network of Portreeve gets: its API listens to its own machine alone. */
  async function curl(...args: string[]): Promise<{ status: number; text: string }> {
    const argv = ['nsenter', `--net=/run/netns/${machines.manager.name}`, 'curl', '-s', '-m', '60']
    const { stdout } = await run([...argv, '-w', '\n%{http_code}', ...args], { cwd: '/' })
    const end = stdout.lastIndexOf('\n')
    return { status: Number(stdout.slice(end + 1)), text: stdout.slice(0, end) }
  }
  async function call(method: string, path: string, body?: unknown): Promise<{ status: number; body: any }> {
    const headers = ['-H', `authorization: Bearer ${token}`, '-H', 'content-type: application/json']
    const sent = body === undefined ? [] : ['-d', JSON.stringify(body)]
    const { status, text } = await curl('-X', method, ...headers, ...sent, `http://127.0.0.1:${PORT}${path}`)
    return { status, body: text.startsWith('{') ? JSON.parse(text) : text }
  }
  /** The client as an administrator calls it beside Portreeve. */
  async function client(...args: string[]) {
    const environment = [
      `PORTREEVE_URL=http://127.0.0.1:${PORT}`,
      `PORTREEVE_TOKEN=${token}`,
      'HOME=/nowhere',
    ]
    const inside = ['nsenter', `--net=/run/netns/${machines.manager.name}`, 'env', ...environment]
    const { exit_code, stdout, stderr } = await run([...inside, process.execPath, CLIENT, ...args], {
      cwd: '/',
    })
    return { exit_code, stdout, stderr }
  }
  const visit = async (app: string) =>
    (await curl('-H', `host: ${app}.apps.test`, `http://127.0.0.1:${EDGE_PORT}/`)).text.trim()
  const node = async () => (await call('GET', `/api/nodes/${node_id}`)).body.data
  /** Where the instances of an app are. */
  const places = async (app: string): Promise<string[]> =>
    (await call('GET', `/api/apps/${apps[app]}/instances`)).body.data.map(
      (instance: { node: string }) => instance.node,
    )
  const runningThere = async () =>
    (await machines.worker.docker.listContainers()).map(({ Names }) => Names[0])
  async function make(name: string, more: object): Promise<void> {
    const made = await call('POST', '/api/apps', {
      name,
      port: 8080,
      soak_seconds: 0,
      dockerfile: `FROM ${BUSYBOX_IMAGE}\nEXPOSE 8080\nCMD ["sh","-c","mkdir -p /www; echo ${name} > /www/index.html; exec httpd -f -h /www -p 8080"]\n`,
      ...more,
    })
    expect(made.status, JSON.stringify(made.body)).toBe(201)
    apps[name] = made.body.data.id
    await eventually(`${name} running`, async () =>
      (await call('GET', `/api/apps/${apps[name]}`)).body.data.status === 'running' ? true : undefined,
    )
  }

  beforeAll(async () => {
    if (!existsSync(ENTRY)) throw new Error('Build the server first: npm run build')
    machines = await startMachines({ 'live-restore': true })
    await ensureBusyboxImage(machines.manager.docker)
    // The edge's image comes from the engine of the tests.
    const archive = execFileSync('/usr/bin/docker', ['save', EDGE_IMAGE], { maxBuffer: 2 ** 30 })
    execFileSync('/usr/bin/docker', ['-H', machines.manager.docker_host, 'load'], { input: archive })
    data_directory = mkdtempSync('/var/tmp/ptr-nodes-')
    server = spawn(
      'nsenter',
      [`--net=/run/netns/${machines.manager.name}`, process.execPath, ...NODE_ARGUMENTS, ENTRY],
      {
        stdio: 'ignore',
        env: {
          PATH: process.env.PATH,
          HOME: process.env.HOME,
          NODE_ENV: 'production',
          ...ALLOCATOR,
          HOST: '127.0.0.1',
          PORT: String(PORT),
          PORTREEVE_DATA_DIR: data_directory,
          PORTREEVE_HTTP_PORT: String(EDGE_PORT),
          PORTREEVE_HTTPS_PORT: '8443',
          PORTREEVE_BASE_DOMAIN: 'apps.test',
          PORTREEVE_ADMIN_EMAIL: ADMIN.email,
          PORTREEVE_ADMIN_PASSWORD: ADMIN.password,
          DOCKER_HOST: machines.manager.docker_host,
        },
      },
    )
    token = await eventually('a login', async () => {
      const { body } = await call('POST', '/api/auth/login', ADMIN)
      return body?.data?.token as string | undefined
    })
  })
  afterAll(async () => {
    if (server) {
      const ended = new Promise((resolve) => server.once('exit', resolve))
      server.kill('SIGTERM')
      await ended
    }
    machines?.worker.setReachable(true)
    await machines?.close()
    if (data_directory) rmSync(data_directory, { recursive: true, force: true })
  })

  it('joins once its key was approved', async () => {
    const project = (await call('GET', '/api/projects')).body.data[0].id
    const { address, private_key } = machines.target
    const key = await call('POST', '/api/ssh-keys', { project_id: project, name: 'servers', private_key })
    expect(key.status).toBe(201)
    const unknown = await call('POST', '/api/nodes', { address, ssh_key_id: key.body.data.id })
    expect(unknown.status).toBe(409)
    expect(unknown.body.error.details).toContainEqual({ path: 'host_key', message: machines.host_key })
    expect(await client('nodes', 'add', address)).toMatchObject({
      exit_code: 5,
      stderr: expect.stringContaining(`shows the key ${machines.host_key}. Compare it, then say --host-key.`),
    })
    const added = await client('nodes', 'add', address, '--host-key', machines.host_key)
    expect([added.exit_code, added.stderr]).toEqual([0, expect.stringContaining(' is joining.')])
    expect(added.stdout).toMatch(/^\S+ has joined, and takes work\.\n$/)
    const [name] = added.stdout.split(' ')
    expect((await client('nodes')).stdout).toMatch(
      new RegExp(`^NAME .*\\n\\S+ +ready .*\\n${name} +ready +${address} +0 +\\S+ (MiB|GiB) of`),
    )
    node_id = JSON.parse((await client('nodes', 'show', name!, '--json')).stdout).id
    await eventually('the server ready', async () => ((await node()).state === 'ready' ? true : undefined))
  })
  it('runs what is placed on it, which the edge serves', async () => {
    await make('there', { node_id })
    expect(await places('there')).toEqual([node_id])
    expect(await visit('there')).toBe('there')
    const nodes = (await call('GET', '/api/nodes')).body.data as { id: string; role: string }[]
    await make('here', { node_id: nodes.find(({ role }) => role === 'manager')!.id })
    expect(await runningThere()).toHaveLength(1)
  })
  it('is logged in to at another port once that was tried, and with no key that it does not know', async () => {
    const before = (await node()).ssh
    const { id: ssh_key_id } = (await call('POST', '/api/ssh-keys/generate', { name: 'unknown' })).body.data
    const refused = await call('PUT', `/api/nodes/${node_id}`, { ssh: { ssh_key_id } })
    expect([refused.status, refused.body.error.details[0].path]).toEqual([409, 'ssh.ssh_key_id'])
    const changed = await call('PUT', `/api/nodes/${node_id}`, { ssh: { port: STRICT_PORT } })
    expect([changed.status, changed.body.data.ssh]).toEqual([200, { ...before, port: STRICT_PORT }])
    expect((await call('GET', `/api/nodes/${node_id}/health`)).body.data.checks.engine.ok).toBe(true)
    expect([await visit('there'), await places('there')]).toEqual(['there', [node_id]])
    expect((await call('PUT', `/api/nodes/${node_id}`, { ssh: { port: before.port } })).status).toBe(200)
  })
  it('has nothing of an app that was placed elsewhere, whatever a container there says', async () => {
    const [mine] = (await call('GET', `/api/apps/${apps.here}/instances`)).body.data as { id: string }[]
    const { Name, Config, HostConfig } = await machines.manager.docker.getContainer(mine!.id).inspect()
    const [model] = await machines.worker.docker.listContainers()
    const fake = await machines.worker.docker.createContainer({
      name: Name.slice(1),
      Image: model!.ImageID,
      Labels: Config.Labels,
      HostConfig: { NetworkMode: HostConfig.NetworkMode! },
    })
    await fake.start()
    expect(await places('here')).toEqual(['local'])
    await fake.remove({ force: true })
  })
  it('gives its apps to others without a request lost, and takes them again', async () => {
    const seen = new Set<string>()
    let is_over = false
    const load = (async () => {
      while (!is_over) seen.add(await visit('there'))
    })()
    await call('PUT', `/api/apps/${apps.there}`, { node_id: null })
    expect((await client('nodes', 'drain', node_id)).stdout).toContain('takes no more work')
    await eventually('the server empty', async () => ((await runningThere()).length === 0 ? true : undefined))
    expect(await places('there')).not.toContain(node_id)
    expect((await client('nodes')).stdout).toContain(' drained ')
    expect((await client('nodes', 'activate', node_id)).stdout).toContain('takes work again')
    await call('PUT', `/api/apps/${apps.there}`, { node_id })
    await call('POST', `/api/apps/${apps.there}/deploy`, {})
    await eventually('the app back', async () =>
      (await places('there')).join() === node_id ? true : undefined,
    )
    is_over = true
    await load
    expect([...seen]).toEqual(['there'])
  })
  it('loses its apps to others when it falls silent, and what it still has when it is back', async () => {
    await call('PUT', `/api/apps/${apps.there}`, { node_id: null })
    machines.worker.setReachable(false)
    await eventually('the server lost', async () =>
      (await node()).state === 'unreachable' ? true : undefined,
    )
    await eventually('the app elsewhere', async () => ((await visit('there')) === 'there' ? true : undefined))
    expect(await visit('here')).toBe('here')
    machines.worker.setReachable(true)
    await eventually('the server back', async () => ((await node()).state === 'ready' ? true : undefined))
    await eventually('the server empty', async () => ((await runningThere()).length === 0 ? true : undefined))
  })
  it('leaves nothing behind when it is removed', async () => {
    expect((await client('nodes', 'remove', node_id)).exit_code).toBe(2)
    expect((await client('nodes', 'remove', node_id, '--yes')).exit_code).toBe(0)
    expect((await client('nodes', 'show', 'elsewhere')).exit_code).toBe(3)
    await eventually('the server gone', async () =>
      (await call('GET', `/api/nodes/${node_id}`)).status === 404 ? true : undefined,
    )
    const there = ['-H', machines.worker.docker_host]
    expect(docker(...there, 'ps', '-aq') + docker(...there, 'images', '-q')).toBe('')
    expect(
      docker(...there, 'network', 'ls', '--format', '{{.Name}}')
        .split('\n')
        .sort(),
    ).toEqual(['bridge', 'host', 'none'])
    expect(docker('-H', machines.manager.docker_host, 'info', '--format', '{{.Swarm.LocalNodeState}}')).toBe(
      'inactive',
    )
    expect(await visit('there')).toBe('there')
  })
})
