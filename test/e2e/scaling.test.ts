import { request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, expect, test } from 'vitest'
import { docker, eventually, nodeApp } from '#test/support/portreeve'
import { runLoad } from '../../bench/support/strict-client.ts'
import { deployed } from './support/deployed.ts'
import { useForge } from './support/forge.ts'

const MIB = 1024 * 1024
const HOST = 'elastic.apps.test'
const server = useForge()
let id: string
const scaling = async () => (await server.portreeve.call('GET', `/api/apps/${id}/scaling`)).body.data
const put = (body: unknown, path = '') => server.portreeve.call('PUT', `/api/apps/${id}/scaling${path}`, body)
const untilScaled = (count: number) =>
  eventually(`${count} instances`, async () => {
    const { status, running } = await scaling()
    return running === count && (status === 'steady' || status === 'asleep') ? true : undefined
  })
const containers = () =>
  docker('ps', '-q', '--filter', `label=portreeve.app=${id}`).split('\n').filter(Boolean)

/** A POST through the edge, whose body the app must have got whole. */
const post = (body: Buffer) =>
  new Promise<number>((resolve, reject) => {
    const outgoing = request(
      {
        host: '127.0.0.1',
        port: server.portreeve.edge_port,
        method: 'POST',
        agent: false,
        headers: { host: HOST },
      },
      (response) => response.resume().on('end', () => resolve(response.statusCode!)),
    )
    outgoing.on('error', reject)
    outgoing.end(body)
  })

beforeAll(async () => {
  const repository = server.forge.repository('elastic')
  repository.commit(nodeApp('one'))
  id = (await deployed(server.portreeve, { name: 'elastic', git_url: repository.url })).id
})

test('one to five instances and back under load lose no request, without a deployment', async () => {
  const before = (await server.portreeve.call('GET', `/api/apps/${id}/deployments`)).body.total
  const over = Promise.withResolvers<void>()
  const load = runLoad({
    host: '127.0.0.1',
    port: server.portreeve.edge_port,
    host_header: HOST,
    connections: 8,
    until: over.promise,
  })
  try {
    for (const replicas of [5, 1]) {
      expect((await put({ replicas })).status).toBe(200)
      await untilScaled(replicas)
      expect(containers()).toHaveLength(replicas)
    }
  } finally {
    over.resolve()
  }
  const { failed, failed_total, sent } = await load
  expect({ failed, failed_total }).toEqual({ failed: {}, failed_total: 0 })
  expect(sent).toBeGreaterThan(100)
  expect((await server.portreeve.call('GET', `/api/apps/${id}/deployments`)).body.total).toBe(before)
})

test('limits and reservations are what the engine enforces, on the same container', async () => {
  const [container] = containers()
  await put({ limits: { cpus: 0.5, memory_bytes: 192 * MIB }, reservations: { memory_bytes: 64 * MIB } })
  const inspect = () =>
    docker(
      'inspect',
      '-f',
      '{{.HostConfig.NanoCpus}} {{.HostConfig.Memory}} {{.HostConfig.MemoryReservation}}',
      container!,
    )
  await eventually('The limits', () =>
    inspect() === `500000000 ${192 * MIB} ${64 * MIB}` ? true : undefined,
  )
  expect(containers()).toEqual([container])
})

test('asleep it has no container; what comes then wakes it and loses nothing, a restart of Portreeve included', async () => {
  await put({ replicas: 0 })
  await untilScaled(0)
  expect(containers()).toEqual([])
  const body = Buffer.alloc(300_000, 'x')
  const asked = Array.from({ length: 100 }, (_, index) =>
    index % 10 === 0 ? post(body) : server.portreeve.visit(HOST).then(({ status }) => status),
  )
  expect(new Set(await Promise.all(asked))).toEqual(new Set([200]))
  await untilScaled(1)
  await put({ replicas: 0 })
  await untilScaled(0)
  // Nobody is there to wake it, and who asks is told so; what waits while it comes back is answered.
  await server.portreeve.kill()
  expect((await server.portreeve.visit(HOST)).status).toBe(503)
  const waiting = delay(500).then(() => server.portreeve.visit(HOST))
  await server.portreeve.start()
  const first = await waiting
  expect([200, 503]).toContain(first.status)
  expect((await server.portreeve.visit(HOST)).status).toBe(200)
  expect((await scaling()).decisions[0]).toMatchObject({ reason: 'request', from: 0, to: 1 })
})

test('a rule follows real load up, and its numbers can be read', async () => {
  const rule = { metric: 'requests_per_second', target: 5, min: 1, max: 3, scale_up_cooldown_s: 0 }
  expect((await put(rule, '/auto')).body.data.auto).toMatchObject(rule)
  const over = new AbortController()
  const load = (async () => {
    while (!over.signal.aborted) {
      await server.portreeve.visit(HOST)
      await delay(40)
    }
  })()
  try {
    await untilScaled(3)
  } finally {
    over.abort()
    await load
  }
  const [decision] = (await scaling()).decisions
  expect(decision).toMatchObject({ reason: 'rule', metric: 'requests_per_second', target: 5, to: 3 })
  expect(decision.value).toBeGreaterThan(5)
})
