import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { type S3Server, startS3Server } from '#test/support/s3-server'
import { type SftpServer, startSftpServer } from '#test/support/sftp-server'

let s3: S3Server
let sftp: SftpServer
beforeAll(async () => {
  ;[s3, sftp] = await Promise.all([startS3Server(), startSftpServer()])
})
afterAll(async () => {
  await Promise.all([s3.close(), sftp.close()])
})
let api: TestApi
beforeEach(async () => {
  api = await createTestApi({ environment: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: '127.0.0.1' } })
})
afterEach(() => api.close())

const bucket = (changes: object = {}) => ({
  name: 'Bucket',
  kind: 's3',
  config: {
    endpoint: s3.endpoint,
    bucket: s3.bucket,
    access_key_id: s3.access_key_id,
    secret_access_key: s3.secret_access_key,
    ...changes,
  },
})
const server = (changes: object = {}) => ({
  name: 'Server',
  kind: 'sftp',
  config: {
    host: '127.0.0.1',
    port: sftp.port,
    username: sftp.username,
    private_key: sftp.private_key,
    host_key: sftp.host_key,
    path: sftp.folder,
    ...changes,
  },
})
const add = (body: object) => api.as('admin').post('/api/storage-providers', body)
const all = async () => (await api.as('viewer').get('/api/storage-providers')).body

describe('GET /api/storage-providers', () => {
  it('shows a folder of the server as the default of a fresh installation', async () => {
    expect((await all()).data).toMatchObject([
      {
        name: 'This server',
        kind: 'local',
        is_default: true,
        location: 'folder default',
        has_passphrase: false,
      },
    ])
    expect((await all()).total).toBe(1)
  })
})

describe('POST /api/storage-providers', () => {
  it('keeps a folder, a bucket and a server, each after it was tried, and shows no secret of them', async () => {
    const before = api.services.events.latest()
    const made = [
      await add({ name: 'Folder', kind: 'local', config: { folder: 'a/b' } }),
      await add(bucket()),
      await add(server()),
    ]
    expect(made.map(({ status }) => status)).toEqual([201, 201, 201])
    expect(made.map(({ body }) => body.data.secrets)).toEqual([[], ['secret_access_key'], ['private_key']])
    expect(made.every(({ body }) => body.data.checked_at !== null)).toBe(true)
    const shown = JSON.stringify([made.map(({ body }) => body), await all(), api.events(before)])
    for (const secret of [sftp.private_key, '"secret_access_key":']) expect(shown).not.toContain(secret)
    expect(api.events(before).map(({ type }) => type)).toEqual(
      Array.from({ length: 3 }, () => 'storage_provider.created'),
    )
    const archives = join(api.kernel.config.data_directory, 'backups/archives/a/b')
    expect([existsSync(archives), readdirSync(archives)]).toEqual([true, []])
    expect(readdirSync(sftp.folder)).toEqual([])
  })
  it.each([
    [
      'a wrong secret',
      () => bucket({ secret_access_key: 'wrong' }),
      /^config: cannot be used: .*refused the access key/,
    ],
    [
      'a bucket that is not there',
      () => bucket({ bucket: 'nobodys' }),
      /^config: cannot be used: .*no such bucket/,
    ],
    [
      'a server whose key nobody approved',
      () => server({ host_key: undefined }),
      /^config\.host_key: .*SHA256:/,
    ],
    [
      'a folder that climbs',
      () => ({ name: 'x', kind: 'local', config: { folder: '../x' } }),
      /^config\.folder: /,
    ],
    [
      'a folder from the root',
      () => ({ name: 'x', kind: 'local', config: { folder: '/etc' } }),
      /^config\.folder: /,
    ],
    ['a kind that is not there', () => ({ name: 'x', kind: 'tape', config: {} }), /^kind: /],
    ['a field that is not there', () => bucket({ acl: 'public' }), /^config\.acl: /],
    ['a short passphrase', () => ({ ...bucket(), passphrase: 'short' }), /^passphrase: /],
    ['a login without any secret', () => server({ private_key: undefined }), /^config: /],
  ])('refuses %s with 422, keeps nothing and tells nobody', async (_what, body, message) => {
    await all()
    const before = api.services.events.latest()
    const answer = await add(body())
    expect([answer.status, answer.body.error?.message]).toEqual([422, expect.stringMatching(message)])
    expect([(await all()).total, api.services.events.latest()]).toEqual([1, before])
  })
  it('does not connect to a private address that the operator did not list', async () => {
    const closed = await createTestApi()
    const before = s3.requests.length
    const answer = await closed.as('admin').post('/api/storage-providers', bucket())
    expect([answer.status, s3.requests.length - before]).toEqual([422, 0])
    await closed.close()
  })
  it('refuses a second one of the same name with 409', async () => {
    await add({ name: 'Folder', kind: 'local', config: { folder: 'a' } })
    expect((await add({ name: 'Folder', kind: 'local', config: { folder: 'b' } })).status).toBe(409)
  })
  it.each(['owner', 'developer', 'viewer'] as const)('is not for %s', async (caller) => {
    expect((await api.as(caller).post('/api/storage-providers', bucket())).status).toBe(403)
  })
})

describe('PUT /api/storage-providers/:id', () => {
  it('changes what is named, keeps the secrets, and tries before it keeps', async () => {
    const { id } = (await add(bucket())).body.data
    const change = (body: object) => api.as('admin').put(`/api/storage-providers/${id}`, body)
    const renamed = await change({ name: 'Frankfurt', config: { prefix: 'prod' } })
    expect([renamed.status, renamed.body.data.name, renamed.body.data.location]).toEqual([
      200,
      'Frankfurt',
      `127.0.0.1:${new URL(s3.endpoint).port}/backups/prod`,
    ])
    expect((await change({ config: { secret_access_key: 'wrong' } })).status).toBe(422)
    expect((await change({ config: { bucket: 7 } })).body.error.message).toMatch(/^config\.bucket: /)
    expect((await api.as('admin').post(`/api/storage-providers/${id}/test`)).status).toBe(200)
  })
  it('never takes a kept secret to another server, not even to try it', async () => {
    const path = async (body: object) => `/api/storage-providers/${(await add(body)).body.data.id}`
    const [to_bucket, to_server] = [await path(bucket()), await path(server())]
    const before = s3.requests.length
    const refused = [
      await api
        .as('admin')
        .put(to_bucket, { config: { endpoint: s3.endpoint.replace('127.0.0.1', 'localhost') } }),
      await api.as('admin').put(to_server, { config: { port: sftp.port + 1 } }),
    ]
    expect(refused.map(({ status, body }) => [status, body.error?.message])).toEqual([
      [422, expect.stringMatching(/^config\.secret_access_key: must be sent again/)],
      [422, expect.stringMatching(/^config\.private_key: must be sent again/)],
    ])
    expect(s3.requests).toHaveLength(before)
  })
  it('loses nothing of a change that is made while another one is tried', async () => {
    const { id } = (await add(bucket())).body.data
    const put = (body: object) => api.as('admin').put(`/api/storage-providers/${id}`, body)
    const { secret_access_key } = s3
    const isProbe = (method: string) => method === 'PUT'
    const begun = s3.requests.length
    const release = s3.silence(isProbe)
    const tried = [put({ config: { prefix: 'one' } }), put({ config: { secret_access_key } })]
    const probes = () => s3.requests.slice(begun).filter((line) => line.startsWith('PUT '))
    await expect.poll(() => probes().length).toBe(2)
    expect((await put({ name: 'renamed' })).status).toBe(200)
    release()
    const both = await Promise.all(tried)
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 409])
    expect((await all()).data.map(({ name }: { name: string }) => name)).toContain('renamed')
  })
  it('makes one the default, and one only', async () => {
    const { id } = (await add(bucket())).body.data
    await api.as('admin').put(`/api/storage-providers/${id}`, { is_default: true })
    const { data } = await all()
    expect(data.filter((one: { is_default: boolean }) => one.is_default)).toMatchObject([{ id }])
  })
  it('seals a passphrase, which is never shown', async () => {
    const { id } = (await add(bucket())).body.data
    const passphrase = 'a passphrase that is a canary'
    const { body } = await api.as('admin').put(`/api/storage-providers/${id}`, { passphrase })
    expect(body.data.has_passphrase).toBe(true)
    expect(api.services.storage_providers.passphrase(id)).toBe(passphrase)
    const stored = JSON.stringify(api.kernel.db.raw.prepare('SELECT * FROM storage_providers').all())
    for (const secret of [passphrase, '"secret_access_key"', 'BEGIN']) expect(stored).not.toContain(secret)
  })
})

describe('POST /api/storage-providers/:id/test', () => {
  it('writes, reads and deletes an object, and says what the destination refuses', async () => {
    const { id } = (await add(bucket({ prefix: 'probe' }))).body.data
    const before = s3.requests.length
    const { status, body } = await api.as('admin').post(`/api/storage-providers/${id}/test`)
    expect([status, body.data.id]).toEqual([200, id])
    expect(s3.requests.slice(before).map((line) => line.split(' ')[0])).toEqual([
      ...['PUT', 'GET', 'DELETE'],
      // Whether parts of an upload of it are left there.
      'GET',
    ])
    s3.failNext((method) => method === 'PUT', 507, 'XMinioStorageFull')
    const full = await api.as('admin').post(`/api/storage-providers/${id}/test`)
    expect([full.status, full.body.error.message]).toEqual([
      409,
      expect.stringContaining('has no space left'),
    ])
  })
})

describe('DELETE /api/storage-providers/:id', () => {
  it('forgets one that nothing uses; the default stays', async () => {
    const { id } = (await add(bucket())).body.data
    const [first] = (await all()).data.slice(-1)
    expect((await api.as('admin').delete(`/api/storage-providers/${first.id}`)).status).toBe(409)
    expect((await api.as('admin').delete(`/api/storage-providers/${id}`)).body.data.deleted).toBe(true)
    expect((await api.as('admin').delete(`/api/storage-providers/${id}`)).status).toBe(404)
  })
})
