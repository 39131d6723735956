import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { registryHost } from '#server/kernel/image-reference'
import { createTestApi, type TestApi } from '#test/support/api'

const LOGIN = { username: 'ada', password: 'the right password of ada' }
const servers: Server[] = []
let api: TestApi
let tokens: string
let basic: string

/**
 * A registry that speaks the protocol of the OCI distribution specification: it challenges, and checks the
 * answer.
 */
async function startRegistry(scheme: 'basic' | 'bearer'): Promise<string> {
  const expected = `Basic ${Buffer.from(`${LOGIN.username}:${LOGIN.password}`).toString('base64')}`
  const server = createServer((request, response) => {
    const url = new URL(request.url!, 'http://registry')
    const isRight = request.headers.authorization === expected
    if (url.pathname === '/token')
      return void response
        .writeHead(isRight && url.searchParams.get('service') === 'registry' ? 200 : 401)
        .end('{"token":"x"}')
    if (url.pathname !== '/v2/') return void response.writeHead(404).end()
    if (isRight && scheme === 'basic') return void response.writeHead(200).end('{}')
    response
      .writeHead(401, {
        'www-authenticate':
          scheme === 'basic'
            ? 'Basic realm="registry"'
            : `Bearer realm="http://${host}/token",service="registry"`,
      })
      .end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  servers.push(server)
  return host
}
/** Leaves requests to a registry without an answer until so many came, and somebody lets them go. */
function held(host: string) {
  const server = servers.find((one) => host.endsWith(`:${(one.address() as AddressInfo).port}`))!
  const [answer] = server.listeners('request') as ((...args: unknown[]) => void)[]
  const waiting: (() => void)[] = []
  server.removeAllListeners('request')
  server.on('request', (...args) => waiting.push(() => answer!(...args)))
  return async (count: number) => {
    await expect.poll(() => waiting.length).toBe(count)
    return () => {
      server.removeAllListeners('request').on('request', answer!)
      for (const go of waiting) go()
    }
  }
}
beforeAll(async () => {
  ;[basic, tokens] = [await startRegistry('basic'), await startRegistry('bearer')]
  api = await createTestApi({
    jobs: false,
    environment: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: `${basic},${tokens}` },
  })
})
afterAll(async () => {
  await api.close()
  for (const server of servers) server.close()
})

describe('registries', () => {
  it.each(['basic', 'bearer'] as const)(
    'are tried before they are kept, with a %s challenge',
    async (scheme) => {
      const host = scheme === 'basic' ? basic : tokens
      const wrong = await api
        .as('admin')
        .post('/api/registries', { name: 'ours', host, ...LOGIN, password: 'wrong' })
      expect([wrong.status, wrong.body.error.message]).toEqual([
        422,
        expect.stringContaining('password: was refused'),
      ])
      const added = await api.as('admin').post('/api/registries', { name: 'ours', host, ...LOGIN })
      expect([added.status, Object.keys(added.body.data).sort()]).toEqual([
        201,
        ['created_at', 'host', 'id', 'name', 'updated_at', 'username', 'verified_at'],
      ])
      expect(
        (await api.as('developer').get('/api/registries')).text +
          JSON.stringify(api.kernel.db.sql('SELECT * FROM registries').all()),
      ).not.toContain(LOGIN.password)
      expect((await api.as('admin').post('/api/registries', { name: 'twice', host, ...LOGIN })).status).toBe(
        409,
      )
      const path = `/api/registries/${added.body.data.id}`
      expect((await api.as('admin').put(path, { password: 'wrong' })).status).toBe(422)
      expect((await api.as('admin').put(path, { name: 'renamed' })).body.data.name).toBe('renamed')
      expect(api.services.registries.authFor(`${host}/team/app:1`)).toEqual({
        ...LOGIN,
        server: host,
      })
      expect(api.services.registries.authFor('nginx:1')).toBeUndefined()
      const app = await api
        .as('owner')
        .post('/api/apps', { name: `from-${scheme}`, source: 'image', image: `${host}/team/app:1` })
      expect(app.status).toBe(201)
      expect((await api.as('admin').delete(path)).status).toBe(409)
    },
  )
  it('lose nothing of a change that is made while another one is tried', async () => {
    const host = await startRegistry('basic')
    const own = await createTestApi({
      jobs: false,
      environment: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: host },
    })
    const admin = own.as('admin')
    const { id } = (await admin.post('/api/registries', { name: 'ours', host, ...LOGIN })).body.data
    const put = (body: object) => admin.put(`/api/registries/${id}`, body)
    const asked = held(host)
    const tried = [put({ password: LOGIN.password }), put({ username: LOGIN.username })]
    const release = await asked(2)
    expect((await put({ name: 'renamed' })).status).toBe(200)
    release()
    const both = await Promise.all(tried)
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 409])
    expect((await admin.get('/api/registries')).body.data[0].name).toBe('renamed')
    await own.close()
  })
  it('T7: connects to no private address that is not listed, and to nothing that does not speak as a registry', async () => {
    const server = createServer((_request, response) => response.writeHead(200).end('<html>'))
    let connections = 0
    server.on('connection', () => (connections += 1))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    servers.push(server)
    for (const host of [
      `127.0.0.1:${(server.address() as AddressInfo).port}`,
      'localhost:9000',
      '169.254.169.254',
      '[::1]:9000',
    ]) {
      const answer = await api.as('admin').post('/api/registries', { name: 'inside', host, ...LOGIN })
      expect([host, answer.status]).toEqual([host, 422])
    }
    expect(connections).toBe(0)
  })
  it.each([
    'portreeve/app_x:dep_y',
    'docker.io/portreeve/app_x:dep_y',
    'index.docker.io/portreeve/app_x@sha256:'.concat('0'.repeat(64)),
  ])('do not have %s, which is the build of an app', async (image) => {
    const answer = await api.as('owner').post('/api/apps', { name: 'foreign', image })
    expect([answer.status, answer.body.error.message]).toEqual([
      422,
      expect.stringContaining('must not begin with portreeve/'),
    ])
  })
  it.each([
    ['nginx', 'docker.io'],
    ['library/nginx:1', 'docker.io'],
    ['index.docker.io/a/b', 'docker.io'],
    ['ghcr.io/a/b@sha256:00', 'ghcr.io'],
    ['localhost/a', 'localhost'],
    ['registry:5000/a/b:1', 'registry:5000'],
    ['Registry.Example.com/a', 'registry.example.com'],
  ])('reads the registry of %s as %s', (image, host) => {
    expect(registryHost(image)).toBe(host)
  })
})
