import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Fatal } from '#server/kernel/jobs/definition'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'
import { type PretendedServer, pretendServer } from './server.ts'

let api: TestApi
let server: PretendedServer
beforeEach(async () => {
  api = await createTestApi()
  server = pretendServer(api)
})
afterEach(() => api.close())

const developer = () => api.as('developer')
const owner = () => api.as('owner')
const idle = () => api.services.jobs.idle()
const create = async (more: Record<string, unknown> = {}) => {
  const made = await developer().post('/api/databases', { name: 'shop-db', engine: 'postgres', ...more })
  await idle()
  return made
}
const made = async (more: Record<string, unknown> = {}): Promise<string> => (await create(more)).body.data.id
const show = async (id: string) => (await developer().get(`/api/databases/${id}`)).body.data
const instances = (id: string) => api.fakes.engine.instances({ owner: { kind: 'database', id } })
const events = (since = 0) => api.events(since).filter(({ type }) => type.startsWith('database.'))
const last = () => api.events().at(-1)?.seq ?? 0

describe('a new database', () => {
  it('is told as creating, and runs once its server answers and takes its login', async () => {
    const { status, body } = await developer().post('/api/databases', { name: 'shop-db', engine: 'postgres' })
    expect([status, body.data.status, body.data.version]).toEqual([201, 'creating', '17'])
    await idle()
    const database = await show(body.data.id)
    expect(database).toMatchObject({
      status: 'running',
      last_error: null,
      host: 'shop-db.db.internal',
      port: 5432,
    })
    expect(database.connection_string).toBe(
      `postgres://app_1:${database.password}@shop-db.db.internal:5432/shop_db`,
    )
    expect(server.logins.get('app_1')).toBe(database.password)
    expect((await instances(database.id)).map(({ state }) => state)).toEqual(['running'])
    expect(events().map(({ type }) => type)).toEqual(['database.created', 'database.running'])
  })
  it.each(['read_key', 'deploy_key'] as const)('is shown to a %s without what opens it', async (key) => {
    const id = await made({ public: true })
    const whole = await owner().get(`/api/databases/${id}`)
    expect(whole.body.data.external_connection_string).toContain(whole.body.data.password)
    const { status, text, body } = await api.as(key).get(`/api/databases/${id}`)
    expect([status, text.includes(whole.body.data.password)]).toEqual([200, false])
    expect(body.data).toEqual({
      ...whole.body.data,
      password: '********',
      connection_string: '********',
      external_connection_string: '********',
      client_command: '********',
      external_client_command: '********',
    })
    // Whoever was shown no password is not said to have read it.
    const told = (await api.as('admin').get('/api/audit-logs?action=database.reveal')).body
    expect(told.data.map(({ actor }: any) => actor.method)).not.toContain('api_key')
  })
  it('is told with the command that opens it, and without its password when that is asked for', async () => {
    const id = await made({ public: true })
    const { password, ...whole } = await show(id)
    expect(whole.client_command).toBe(`psql ${whole.connection_string}`)
    expect(whole.external_client_command).toContain(whole.external_connection_string)
    const { status, text, body } = await developer().get(`/api/databases/${id}?credentials=masked`)
    expect([status, text.includes(password)]).toEqual([200, false])
    expect(body.data).toMatchObject({
      password: '********',
      connection_string: 'postgres://app_1:********@shop-db.db.internal:5432/shop_db',
      client_command: "psql 'postgres://app_1:********@shop-db.db.internal:5432/shop_db'",
    })
    expect(body.data.external_client_command).toContain('********')
  })
  it('tells the audit log who was shown its password, a program that asks all day once in ten minutes', async () => {
    const id = await made()
    const told = async () => {
      const { body } = await api.as('admin').get('/api/audit-logs?action=database.reveal')
      return body.data.map(({ resource }: any) => resource.id)
    }
    await developer().get(`/api/databases/${id}?credentials=masked`)
    expect(await told()).toEqual([])
    await show(id)
    await show(id)
    expect(await told()).toHaveLength(1)
    expect(await told()).toEqual([id])
    api.fakes.clock.advance(10 * 60_000)
    await show(id)
    expect(await told()).toHaveLength(2)
    for (const _ of [1, 2]) await developer().get(`/api/databases/${id}?credentials=shown`)
    expect(await told()).toHaveLength(4)
    await owner().get(`/api/databases/${id}`)
    expect(await told()).toHaveLength(5)
    // Also after the clock was set back.
    api.fakes.clock.advance(10 * 60_000)
    api.fakes.clock.set('2025-01-01T00:00:00.000Z')
    await owner().get(`/api/databases/${id}`)
    expect(await told()).toHaveLength(6)
  })
  it('shows its password to nobody who starts, stops, changes or rotates it: of that no reveal would tell', async () => {
    const id = await made({ public: true })
    const { password } = (await developer().get(`/api/databases/${id}`)).body.data
    api.fakes.clock.advance(10 * 60_000)
    const answers = []
    for (const path of ['start', 'restart', 'stop', 'start', 'credentials/rotate']) {
      answers.push(await owner().post(`/api/databases/${id}/${path}`))
      await api.services.jobs.idle()
    }
    answers.push(await owner().put(`/api/databases/${id}`, {}))
    const now = (await api.services.databases.view(id)).password
    for (const { status, text, body } of answers) {
      expect([status, text.includes(password), text.includes(now)]).toEqual([200, false, false])
      expect(body.data.connection_string).toContain(':********@')
    }
  })
  it('shows its login to developers and nobody below, and stores it sealed', async () => {
    const id = await made()
    const { password } = await show(id)
    expect((await api.as('viewer').get(`/api/databases/${id}`)).status).toBe(403)
    const { text } = await api.as('viewer').get('/api/databases')
    expect([text.includes(id), text.includes(password), text.includes('password')]).toEqual([
      true,
      false,
      false,
    ])
    const stored = JSON.stringify([
      api.kernel.db.sql('SELECT * FROM databases').all(),
      api.kernel.db.sql('SELECT * FROM jobs').all(),
      api.events(),
      api.kernel.lines,
    ])
    expect(stored).not.toContain(password)
  })
  it('has a server without a published port, on a volume of its own', async () => {
    const id = await made()
    const asked = api.fakes.engine.calls.find(({ method }) => method === 'ensureRelease')!.args[0]
    expect(asked).toMatchObject({
      owner: { kind: 'database', id },
      ports: [],
      replicas: 1,
      update: 'stop_first',
      mounts: [{ kind: 'volume', path: '/var/lib/postgresql/data', read_only: false }],
    })
  })
  it('is refused with a second of its name, an unknown version, too little memory, or a port of another', async () => {
    await made({ public: true, public_port: 15_432 })
    const status = async (more: object) =>
      (await developer().post('/api/databases', { name: 'other', engine: 'postgres', ...more })).status
    const before = last()
    expect(await status({ name: 'shop-db' })).toBe(409)
    expect(await status({ version: '9.6' })).toBe(422)
    expect(await status({ limits: { memory_bytes: 64 * 1024 ** 2 } })).toBe(422)
    expect(await status({ public: true, public_port: 15_432 })).toBe(409)
    expect(await status({ public_port: 15_433 })).toBe(422)
    expect(await status({ name: 'Not a label' })).toBe(422)
    expect(events(before)).toEqual([])
  })
  it('that cannot start says why without its passwords, and starts once it can', async () => {
    server.failing.set('psql', 3)
    const id = await made()
    const failed = await show(id)
    expect([failed.status, failed.last_error]).toEqual([
      'failed',
      expect.stringContaining('psql ended with exit code 3'),
    ])
    expect(failed.last_error).not.toContain(failed.password)
    expect(await instances(id)).toEqual([])
    server.failing.clear()
    expect((await developer().post(`/api/databases/${id}/start`)).status).toBe(200)
    await idle()
    expect(await show(id)).toMatchObject({ status: 'running', last_error: null })
  })
})

describe('a database that runs', () => {
  it('stops, keeps its volume, starts on the same, and restarts', async () => {
    const id = await made()
    const { volume_id } = await show(id)
    await developer().post(`/api/databases/${id}/stop`)
    await idle()
    expect([(await show(id)).status, await instances(id)]).toEqual(['stopped', []])
    expect(await api.fakes.engine.findVolume(volume_id)).toBeDefined()
    expect((await developer().post(`/api/databases/${id}/restart`)).status).toBe(409)
    await developer().post(`/api/databases/${id}/start`)
    await idle()
    const [before] = await instances(id)
    expect(await show(id)).toMatchObject({ status: 'running', volume_id })
    await developer().post(`/api/databases/${id}/restart`)
    await idle()
    const [after] = await instances(id)
    expect([after!.state, after!.id === before!.id]).toEqual(['running', false])
  })
  it('is made again by the reconciler when its server vanishes', async () => {
    const id = await made()
    api.fakes.engine.vanish((await instances(id))[0]!.id)
    await api.services.deployments.reconciler.reconcile()
    expect((await instances(id)).map(({ state }) => state)).toEqual(['running'])
  })
  it('F11: is started from an image that is fetched again when its own is gone, or says why it cannot be', async () => {
    const id = await made()
    const loseImage = async () => {
      const [instance] = await instances(id)
      api.fakes.engine.vanish(instance!.id)
      await api.fakes.engine.removeImage(instance!.image)
      await api.services.deployments.reconciler.reconcile()
      await idle()
    }
    await loseImage()
    expect([(await show(id)).status, (await instances(id)).map(({ state }) => state)]).toEqual([
      'running',
      ['running'],
    ])
    api.fakes.engine.behave('postgres:*', { pull: 'missing' })
    await loseImage()
    expect(await show(id)).toMatchObject({
      ...{ status: 'failed', last_error: expect.stringMatching(/^The image \S+ does not exist\./) },
    })
  })
  it('fails with a sentence when its volume is gone, and gets no empty one', async () => {
    const id = await made()
    const { volume_id } = await show(id)
    await api.fakes.engine.removeRelease(volume_id, 0)
    await api.fakes.engine.removeVolume(volume_id)
    await api.services.deployments.reconciler.reconcile()
    expect(await show(id)).toMatchObject({
      status: 'failed',
      last_error: expect.stringContaining('no longer on the server'),
    })
    await developer().post(`/api/databases/${id}/start`)
    await idle()
    expect(await show(id)).toMatchObject({ status: 'failed' })
    expect(await api.fakes.engine.findVolume(volume_id)).toBeUndefined()
  })
  it('takes new limits and a public port by a restart, with TLS in the address from outside', async () => {
    const id = await made()
    expect((await show(id)).external_connection_string).toBeNull()
    const change = { limits: { cpus: 2, memory_bytes: 1024 ** 3 }, public: true, public_port: 15_432 }
    expect((await developer().put(`/api/databases/${id}`, change)).status).toBe(200)
    await idle()
    const database = await show(id)
    expect(database).toMatchObject({ status: 'running', limits: change.limits, public_port: 15_432 })
    expect(database.external_connection_string).toMatch(/:15432\/shop_db\?sslmode=/)
    const asked = api.fakes.engine.calls.findLast(({ method }) => method === 'ensureRelease')!.args[0]
    expect(asked).toMatchObject({
      ports: [{ container_port: 5432, host_port: 15_432, protocol: 'tcp' }],
      limits: { cpus: 2, memory_bytes: 1024 ** 3 },
      command: expect.arrayContaining(['ssl=on']),
    })
  })
  it('is deleted with everything it had, by owners, and without a backup when they say so', async () => {
    const id = await made()
    const { volume_id } = await show(id)
    expect((await developer().delete(`/api/databases/${id}?skip_backup=true`)).status).toBe(403)
    const answer = await owner().delete(`/api/databases/${id}?skip_backup=true`)
    expect([answer.status, answer.body.data]).toEqual([
      200,
      { id, deleted: true, final_backup_id: null, final_backup_location: null },
    ])
    await idle()
    expect((await developer().get(`/api/databases/${id}`)).status).toBe(404)
    expect([await instances(id), await api.fakes.engine.findVolume(volume_id)]).toEqual([[], undefined])
  })
  it('is not removed when its final backup cannot be taken', async () => {
    const taken: string[] = []
    const dropped: string[] = []
    let broken = true
    api.services.databases.plug({
      final_backup: {
        plan: ({ id }) => `bkp_of_${id}`,
        async take(backup_id) {
          if (broken) throw Object.assign(new Error('the destination is away'), { name: 'Fatal' })
          taken.push(backup_id)
        },
        drop: (backup_id) => void dropped.push(backup_id),
      },
    })
    const id = await made()
    expect((await owner().delete(`/api/databases/${id}`)).body.data.final_backup_id).toBe(`bkp_of_${id}`)
    await expect.poll(async () => (await show(id)).status, { timeout: 60_000 }).toBe('failed')
    expect(dropped).toEqual([`bkp_of_${id}`])
    broken = false
    await owner().delete(`/api/databases/${id}`)
    await idle()
    expect(taken).toEqual([`bkp_of_${id}`])
    expect((await developer().get(`/api/databases/${id}`)).status).toBe(404)
  })
})

describe('an upgrade', () => {
  const upgrade = async (id: string, version: string) => {
    const answer = await developer().put(`/api/databases/${id}`, { version })
    await idle()
    return answer
  }
  it('to a later line copies into a new volume, keeps the old one, and goes back and forth', async () => {
    const id = await made({ version: '15' })
    const before = await show(id)
    expect((await upgrade(id, '17')).body.data.status).toBe('upgrading')
    const after = await show(id)
    expect(after).toMatchObject({
      status: 'running',
      version: '17',
      previous_volume: { volume_id: before.volume_id, version: '15' },
      connection_string: before.connection_string,
    })
    expect(server.ran).toContain('pg_restore')
    await developer().put(`/api/databases/${id}`, { previous_volume: 'restore' })
    await idle()
    expect(await show(id)).toMatchObject({ version: '15', volume_id: before.volume_id })
    await developer().put(`/api/databases/${id}`, { previous_volume: 'restore' })
    await idle()
    await developer().put(`/api/databases/${id}`, { previous_volume: 'remove' })
    await idle()
    expect(await show(id)).toMatchObject({ version: '17', previous_volume: null })
    expect(await api.fakes.engine.findVolume(before.volume_id)).toBeUndefined()
    expect(api.services.databases.spares.volumes()).toEqual([])
  })
  it.each([
    ['the copy differs', () => void (server.copied = { 'public.notes': 2 }), 'does not hold'],
    ['the dump breaks off', () => void server.failing.set('pg_dump', 1), 'pg_dump ended with exit code 1'],
    [
      'the restore is refused',
      () => void server.failing.set('pg_restore', 1),
      'pg_restore ended with exit code 1',
    ],
  ])('after which %s leaves the old version running on its data', async (_, arrange, message) => {
    const id = await made({ version: '15' })
    const before = await show(id)
    arrange()
    await upgrade(id, '17')
    expect(await show(id)).toMatchObject({
      status: 'running',
      version: '15',
      volume_id: before.volume_id,
      previous_volume: null,
      last_error: expect.stringContaining(message),
    })
    const running = await instances(id)
    expect(running.map(({ release_id }) => release_id)).toEqual([before.volume_id])
    expect(api.services.databases.spares.volumes()).toEqual([])
  })
  it('goes on where the server of the copy is killed before it was counted: its data are on its volume', async () => {
    const id = await made({ version: '15' })
    const before = await show(id)
    server.onLoad = () => {
      const loading = api.fakes.engine.calls.findLast(({ method }) => method === 'exec')
      api.fakes.engine.crash(String(loading?.args[0]), 137)
    }
    await upgrade(id, '17')
    expect(await show(id)).toMatchObject({
      ...{ status: 'running', version: '17', last_error: null },
      previous_volume: { volume_id: before.volume_id, version: '15' },
    })
  })
  it('that waits behind a change is upgrading until it has ended', async () => {
    const id = await made({ version: '15' })
    const since = last()
    // The server takes its time to come back.
    server.failing.set('pg_isready', 2)
    await developer().put(`/api/databases/${id}`, { public: true })
    await developer().put(`/api/databases/${id}`, { version: '17' })
    server.failing.delete('pg_isready')
    await idle()
    expect(await show(id)).toMatchObject({ status: 'running', version: '17', public: true })
    // The end of the change before it does not say that the database runs, which it does once the copy serves.
    const told = events(since).map(({ type }) => type)
    expect(
      told.slice(told.indexOf('database.upgrading') + 1).filter((type) => /running|replaced/.test(type)),
    ).toEqual(['database.replaced', 'database.running'])
  })
  it('within a line is made in place; the way back is refused', async () => {
    const id = await made({ version: '17' })
    const { volume_id } = await show(id)
    await upgrade(id, '17.6')
    expect(await show(id)).toMatchObject({
      status: 'running',
      version: '17.6',
      volume_id,
      previous_volume: null,
    })
    expect((await upgrade(id, '16')).status).toBe(422)
    expect((await upgrade(id, '17.5')).status).toBe(422)
  })
})

describe('a link', () => {
  const deployed = async (): Promise<string> => {
    commitShop(api, 'one')
    const { body } = await developer().post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 })
    await idle()
    return body.data.id
  }
  const environment = async (app_id: string) => {
    const asked = api.fakes.engine.calls.findLast(
      ({ method, args }) =>
        method === 'ensureRelease' && (args[0] as { owner: { id: string } }).owner.id === app_id,
    )
    return (asked!.args[0] as { environment: Record<string, string> }).environment
  }
  it('gives the app the connection string with its next deployment, until it is removed', async () => {
    const [app_id, id] = [await deployed(), await made()]
    const linked = await developer().post(`/api/databases/${id}/links`, { app_id })
    expect([linked.status, linked.body.data.key]).toEqual([201, 'DATABASE_URL'])
    await developer().post(`/api/apps/${app_id}/deploy`, {})
    await idle()
    const { connection_string, links } = await show(id)
    expect((await environment(app_id)).DATABASE_URL).toBe(connection_string)
    expect(links).toMatchObject([{ app_id, key: 'DATABASE_URL' }])
    await made({ name: 'not-linked' })
    const listed = (of: string) => api.as('viewer').get(`/api/databases?app_id=${of}`)
    const found = (await listed(app_id)).body
    const link = { app_id, key: 'DATABASE_URL' }
    expect(found).toMatchObject({ total: 1, data: [{ id, links: [link] }] })
    expect((await listed(`app_nothing,${app_id}`)).body).toMatchObject({
      total: 1,
      data: [{ links: [link] }],
    })
    expect(JSON.stringify(found)).not.toContain(connection_string)
    expect((await listed('app_nothing')).body).toMatchObject({ total: 0, data: [] })
    expect((await developer().delete(`/api/databases/${id}/links/${app_id}`)).status).toBe(200)
    expect((await listed(app_id)).body.total).toBe(0)
    expect((await developer().delete(`/api/databases/${id}/links/${app_id}`)).status).toBe(404)
    await developer().post(`/api/apps/${app_id}/deploy`, {})
    await idle()
    expect(await environment(app_id)).not.toHaveProperty('DATABASE_URL')
  })
  it('is one for each app and key, and reaches no app of another project', async () => {
    const [app_id, id] = [await deployed(), await made()]
    const other = await made({ name: 'other' })
    await developer().post(`/api/databases/${id}/links`, { app_id })
    expect((await developer().post(`/api/databases/${id}/links`, { app_id, key: 'B' })).status).toBe(409)
    expect((await developer().post(`/api/databases/${other}/links`, { app_id })).status).toBe(409)
    expect(
      (await developer().post(`/api/databases/${other}/links`, { app_id, key: 'OTHER_URL' })).status,
    ).toBe(201)
    const replaced = (key: string) =>
      developer().post(`/api/databases/${id}/links`, { app_id, key, replace: true })
    expect((await replaced('OTHER_URL')).status).toBe(409)
    expect((await show(id)).links).toMatchObject([{ app_id, key: 'DATABASE_URL' }])
    expect((await replaced('B')).status).toBe(201)
    expect((await show(id)).links).toMatchObject([{ app_id, key: 'B' }])
    const strange = await developer().post(`/api/databases/${id}/links`, {
      app_id: 'app_00000000000000000000',
    })
    expect(strange.status).toBe(422)
  })
  it('follows a rotation: both passwords are valid until the app runs with the new one', async () => {
    const [app_id, id] = [await deployed(), await made()]
    await developer().post(`/api/databases/${id}/links`, { app_id })
    await developer().post(`/api/apps/${app_id}/deploy`, {})
    await idle()
    const before = await show(id)
    expect((await developer().post(`/api/databases/${id}/credentials/rotate`)).status).toBe(403)
    expect((await owner().post(`/api/databases/${id}/credentials/rotate`)).status).toBe(200)
    await idle()
    const after = await show(id)
    expect([after.username, after.last_error]).toEqual(['app_2', null])
    expect(after.password).not.toBe(before.password)
    expect((await environment(app_id)).DATABASE_URL).toBe(after.connection_string)
    expect([...server.logins.keys()]).toEqual(['app_2'])
  })
  it('outlasts a rotation in what one can go back to, and in apps that are stopped', async () => {
    const [app_id, id] = [await deployed(), await made()]
    await developer().post(`/api/databases/${id}/links`, { app_id })
    await developer().post(`/api/apps/${app_id}/deploy`, {})
    await idle()
    const earlier = (await developer().get(`/api/apps/${app_id}/deployments`)).body.data[0].id
    await developer().post(`/api/apps/${app_id}/stop`)
    await idle()
    await owner().post(`/api/databases/${id}/credentials/rotate`)
    await idle()
    const { connection_string } = await show(id)
    await developer().post(`/api/apps/${app_id}/start`)
    await idle()
    expect((await environment(app_id)).DATABASE_URL).toBe(connection_string)
    commitShop(api, 'two')
    await developer().post(`/api/apps/${app_id}/deploy`, {})
    await idle()
    await owner().post(`/api/databases/${id}/credentials/rotate`)
    await idle()
    await developer().post(`/api/apps/${app_id}/rollback`, { deployment_id: earlier })
    await idle()
    expect((await environment(app_id)).DATABASE_URL).toBe((await show(id)).connection_string)
  })
  it('is rotated also where its server ended before, and goes on after a rotation that failed at its begin', async () => {
    const id = await made()
    const { volume_id: release_id } = await show(id)
    const rotate = async () => {
      expect((await owner().post(`/api/databases/${id}/credentials/rotate`)).status).toBe(200)
      await idle()
    }
    const failing = vi
      .spyOn(api.fakes.engine, 'ensureRelease')
      .mockRejectedValueOnce(new Fatal('command_failed', 'It does not start.'))
    await rotate()
    failing.mockRestore()
    expect(await show(id)).toMatchObject({ username: 'app_1', last_error: 'It does not start.' })
    await api.services.jobs.stop()
    expect((await owner().post(`/api/databases/${id}/credentials/rotate`)).status).toBe(200)
    expect((await owner().post(`/api/databases/${id}/credentials/rotate`)).status).toBe(409)
    const [instance] = await api.fakes.engine.instances({ release_id })
    await api.fakes.engine.vanish(instance!.id)
    api.services.jobs.start()
    await idle()
    expect(await show(id)).toMatchObject({ username: 'app_2', last_error: null })
    expect([...server.logins.keys()]).toEqual(['app_2'])
  })
  it('whose app does not come up keeps the old password valid, and the next rotation goes on from there', async () => {
    const [app_id, id] = [await deployed(), await made()]
    await developer().post(`/api/databases/${id}/links`, { app_id })
    await developer().post(`/api/apps/${app_id}/deploy`, {})
    await idle()
    api.fakes.engine.behave(`app=${app_id}`, { start: 'exits' })
    await owner().post(`/api/databases/${id}/credentials/rotate`)
    await idle()
    expect((await show(id)).last_error).toContain('shop could not be started with the new credentials')
    expect([...server.logins.keys()].sort()).toEqual(['app_1', 'app_2'])
    api.fakes.engine.behave(`app=${app_id}`, {})
    await owner().post(`/api/databases/${id}/credentials/rotate`)
    await idle()
    const { last_error, connection_string } = await show(id)
    expect([last_error, [...server.logins.keys()]]).toEqual([null, ['app_2']])
    expect((await environment(app_id)).DATABASE_URL).toBe(connection_string)
  })
})

describe('what others ask of databases', () => {
  it('is told by name within a project: what references stand for', async () => {
    const id = await made()
    const { connection_string, password, project_id } = await show(id)
    expect(api.services.databases.connectionVariables(project_id, 'shop-db')).toEqual({
      DATABASE_URL: connection_string,
      HOST: 'shop-db.db.internal',
      PORT: '5432',
      USERNAME: 'app_1',
      PASSWORD: password,
      DATABASE: 'shop_db',
    })
    expect(api.services.databases.connectionVariables(project_id, 'nobody')).toBeUndefined()
  })
  it('shows engines with versions and logs without passwords', async () => {
    const id = await made()
    const { password } = await show(id)
    api.fakes.engine.print((await instances(id))[0]!.id, `connected with ${password}`)
    const { body } = await api.as('viewer').get(`/api/databases/${id}/logs?q=connected`)
    expect(body.data).toHaveLength(1)
    expect(body.data[0].text).not.toContain(password)
    const engines = (await api.as('viewer').get('/api/databases/engines')).body.data
    expect(engines).toHaveLength(7)
    expect(engines[0]).toMatchObject({ name: 'postgres', port: 5432, tls: true })
  })
})
