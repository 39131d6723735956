import { readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { startApp, type TestApp } from '../platform/ingress/app.ts'
import { configError } from '#server/platform/ingress/runtime/config-error'
import { ask, until } from '../platform/ingress/client.ts'
import { docker, freePorts, openTestEdge, type TestEdge } from '../platform/ingress/edge.ts'

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function serving(
  options?: Parameters<typeof openTestEdge>[0],
): Promise<{ edge: TestEdge; app: TestApp }> {
  const edge = await openTestEdge(options)
  cleanups.push(() => edge.close())
  const app = await startApp('app')
  cleanups.push(() => app.kill())
  await edge.ingress.ensure()
  await edge.ingress.setRoute({ id: 'app_1', hostnames: ['app.test'], servers: [app.server] })
  return { edge, app }
}
const serves = (edge: TestEdge, hostname = 'app.test') =>
  ask(edge.edge, hostname).then(
    (answer) => answer.status === 200,
    () => false,
  )
async function mainPid(edge: TestEdge): Promise<number> {
  return (await docker.getContainer(edge.container.name).inspect()).State.Pid
}

test('a killed proxy is back with the same routes, without Portreeve', async () => {
  const { edge } = await serving()
  const pid = await mainPid(edge)
  process.kill(pid, 'SIGKILL')
  await until('another edge serves', async () => ![0, pid].includes(await mainPid(edge)) && serves(edge))
})

test('a killed worker is back too', async () => {
  const { edge } = await serving()
  const pid = await mainPid(edge)
  const [worker] = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ')
  process.kill(Number(worker), 'SIGKILL')
  await until('the edge stopped', async () => !(await serves(edge)))
  await until('the edge serves again', () => serves(edge))
})

test.each(['killed by an operator', 'removed'])(
  'an edge that was %s comes back with ensure, with the same routes',
  async (how) => {
    const { edge } = await serving()
    const container = docker.getContainer(edge.container.name)
    await (how === 'removed' ? container.remove({ force: true }) : container.kill())
    expect(await edge.ingress.status()).toMatchObject({
      running: false,
      message: expect.any(String),
    })
    await edge.ingress.ensure()
    expect(await serves(edge)).toBe(true)
  },
)

test('Portreeve can be gone: the edge serves on, and the next Portreeve goes on from there', async () => {
  const { edge, app } = await serving()
  await edge.ingress.close()
  expect(await serves(edge)).toBe(true)
  const pid = await mainPid(edge)
  const next = edge.reopen()
  await next.ensure()
  await next.setRoute({ id: 'app_2', hostnames: ['two.test'], servers: [app.server] })
  await expect(next.setRoute({ id: 'app_3', hostnames: ['app.test'], servers: [] })).rejects.toThrow(
    'app.test already belongs to app_1',
  )
  await next.removeRoute('app_1')
  expect(await serves(edge)).toBe(false)
  expect(await serves(edge, 'two.test')).toBe(true)
  expect(await mainPid(edge)).toBe(pid)
})

test('when Portreeve dies between the files and the running edge, the next apply makes both equal', async () => {
  const { edge, app } = await serving()
  const other = await startApp('other')
  cleanups.push(() => other.kill())
  const path = join(edge.directory, 'config/50-backends-0001.cfg')
  await writeFile(
    path,
    (await readFile(path, 'utf8')).replaceAll(String(app.server.port), String(other.server.port)),
  )
  expect((await ask(edge.edge, 'app.test')).seen.app).toBe('app')
  const next = edge.reopen()
  await next.ensure()
  await next.apply({ routes: [{ id: 'app_1', hostnames: ['app.test'], servers: [other.server] }] })
  expect((await ask(edge.edge, 'app.test')).seen.app).toBe('other')
})

test('when the edge was changed behind our back, apply puts it right', async () => {
  const { edge, app } = await serving()
  const { createMasterCli } = await import('#server/platform/ingress/runtime/master-cli')
  await createMasterCli(join(edge.directory, 'run/master.sock')).run([
    'del map /edge/maps/hosts.map app.test',
    'add map /edge/maps/hosts.map foreign.test b00001',
    `disable server b00001/127.0.0.1_${String(app.server.port)}`,
  ])
  expect(await serves(edge)).toBe(false)
  await edge.ingress.apply({
    routes: [{ id: 'app_1', hostnames: ['app.test'], servers: [app.server] }],
  })
  expect(await serves(edge)).toBe(true)
  expect((await ask(edge.edge, 'foreign.test')).status).toBe(404)
})

test('a change while the edge is down is refused with a sentence, and nothing of it is left', async () => {
  const { edge, app } = await serving()
  await docker.getContainer(edge.container.name).kill()
  await expect(
    edge.ingress.setRoute({ id: 'app_2', hostnames: ['two.test'], servers: [app.server] }),
  ).rejects.toThrow('The edge does not answer')
  await edge.ingress.ensure()
  expect(await serves(edge)).toBe(true)
  expect((await ask(edge.edge, 'two.test')).status).toBe(404)
})

test('what the edge would refuse is found before it is put in place, with the name of the route', async () => {
  const { edge } = await serving()
  const path = 'candidate/50-backends-0001.cfg'
  const good = await readFile(join(edge.directory, 'config/50-backends-0001.cfg'), 'utf8')
  const broken = good.replace('  server ', '  http-request return status 9999\n  server ')
  await writeFile(join(edge.directory, path), good)
  expect(await edge.container.check(['config/00-edge.cfg', path])).toBeUndefined()
  await writeFile(join(edge.directory, path), broken)
  const complaint = await edge.container.check(['config/00-edge.cfg', path])
  expect(configError(complaint ?? '', new Map([[path, broken]]))).toMatch(
    /^the route of app_1: error detected .*9999/,
  )
})

test('a port that another program has is named together with the program', async () => {
  const [port = 0] = await freePorts(1)
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(port, '0.0.0.0', resolve))
  cleanups.push(() => new Promise((resolve) => other.close(() => resolve())))
  const edge = await openTestEdge({ http_port: port })
  cleanups.push(() => edge.close())
  await expect(edge.ingress.ensure()).rejects.toThrow(
    new RegExp(
      `^Port ${port} is in use by \\S.* \\(process ${process.pid}\\); free it or set PORTREEVE_HTTP_PORT\\.$`,
    ),
  )
  await new Promise((resolve) => other.close(resolve))
  await edge.ingress.ensure()
  expect(await edge.ingress.status()).toMatchObject({ running: true })
})

test('a new port is taken over by a reload; one that is not free is refused and the old one serves on', async () => {
  const { edge } = await serving()
  const taken = createServer()
  const [port = 0, moved = 0] = await freePorts(2)
  await new Promise<void>((resolve) => taken.listen(port, '0.0.0.0', resolve))
  cleanups.push(() => new Promise((resolve) => taken.close(() => resolve())))
  await expect(edge.reopen({ http_port: port }).ensure()).rejects.toThrow('keeps the old one')
  expect(await serves(edge)).toBe(true)
  await edge.reopen({ http_port: moved }).ensure()
  expect((await ask({ host: '127.0.0.1', port: moved }, 'app.test')).status).toBe(200)
})

test('an image that is missing is named together with what makes it', async () => {
  const edge = await openTestEdge({ image: 'portreeve.invalid/no-such-edge:1' })
  cleanups.push(() => edge.close())
  await expect(edge.ingress.ensure()).rejects.toThrow(
    'The image portreeve.invalid/no-such-edge:1 of the edge is missing',
  )
})

test('a data folder whose path is too long for a socket works like any other', async () => {
  const { edge } = await serving({ folder: `${'long'.repeat(20)}/${'path'.repeat(20)}` })
  expect(Buffer.byteLength(join(edge.directory, 'run/master.sock'))).toBeGreaterThan(108)
  expect(await serves(edge)).toBe(true)
  expect((await readdir('/proc/self/fd')).length).toBeLessThan(200)
})

test('a file that was cut off while it was written is ignored', async () => {
  const { edge } = await serving()
  await writeFile(join(edge.directory, 'config/50-backends-0001.cfg.writing'), 'backend b000')
  await edge.reopen().ensure()
  process.kill(await mainPid(edge), 'SIGKILL')
  await until('the edge serves again', () => serves(edge))
})

test('two installations on one machine keep apart', async () => {
  const [first, second] = [await serving(), await serving()]
  await second.edge.ingress.apply({ routes: [] })
  await second.edge.container.remove()
  expect(await serves(first.edge)).toBe(true)
})

test('nothing outside of its folder belongs to the edge, and nobody else may look in', async () => {
  const { edge } = await serving()
  const { HostConfig, Mounts } = await docker.getContainer(edge.container.name).inspect()
  expect(Mounts.map((mount) => mount.Source).filter(Boolean)).toEqual([edge.directory])
  expect(HostConfig).toMatchObject({
    Privileged: false,
    ReadonlyRootfs: true,
    CapDrop: ['ALL'],
    RestartPolicy: { Name: 'always' },
  })
  const status = await readFile(
    `/proc/${(await readFile(`/proc/${await mainPid(edge)}/task/${await mainPid(edge)}/children`, 'utf8')).trim().split(' ')[0]}/status`,
    'utf8',
  )
  expect(/^Uid:\s+(\d+)/m.exec(status)?.[1]).not.toBe('0')
  expect(/^CapEff:\s+(\S+)/m.exec(status)?.[1]).toBe('0000000000000000')
})
