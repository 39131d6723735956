import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { get } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

const PASSPHRASE = 'correct horse battery staple'
let api: TestApi
let folder: string
beforeEach(async () => {
  api = await createTestApi()
  folder = join(api.kernel.config.data_directory, 'backups/archives/default')
  const [{ id }] = (await api.as('admin').get('/api/storage-providers')).body.data
  await api.as('admin').put(`/api/storage-providers/${id}`, { passphrase: PASSPHRASE })
})
afterEach(() => api.close())

const files = () =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name }) => name)
    : []
const backUp = async () => {
  const { status, body } = await api.as('admin').post('/api/backups', { target: 'platform' })
  await api.services.jobs.idle()
  return { ...(await read(body.data.id)), answered: status, queued: body.data }
}
const read = async (id: string) => (await api.as('admin').get(`/api/backups/${id}`)).body.data
const pathOf = (location: string) => join(folder, location.replace('folder default/', ''))
/** Changes one bit in the middle of an archive. */
const flip = (path: string) => {
  const bytes = readFileSync(path)
  bytes[bytes.length >> 1]! ^= 1
  writeFileSync(path, bytes)
}

describe('a backup of the platform', () => {
  it('is whole, encrypted, described beside itself, told and in the audit trail', async () => {
    const since = api.services.events.latest()
    const { answered, queued, ...backup } = await backUp()
    expect([answered, queued.status, queued.sha256]).toEqual([201, 'queued', null])
    expect(backup).toMatchObject({
      status: 'succeeded',
      target: 'platform',
      project_id: null,
      encrypted: true,
      error: null,
      destination: 'This server',
    })
    const path = pathOf(backup.location)
    expect(statSync(path).size).toBe(backup.size_bytes)
    const manifest = JSON.parse(readFileSync(`${path}.manifest.json`, 'utf8'))
    expect(manifest).toMatchObject({ backup_id: backup.id, sha256: backup.sha256, engine: 'portreeve' })
    expect(manifest.encryption.passphrase).toMatchObject({ cost: 32_768 })
    expect(api.events(since).map(({ type }) => type)).toEqual([
      'backup.queued',
      'backup.started',
      'backup.progress',
      'backup.succeeded',
    ])
    const [line] = (await api.as('admin').get(`/api/audit-logs?resource=${backup.id}`)).body.data
    expect(line.action).toBe('backup.create')
  })
  it('holds no secret in clear, and neither does the row', async () => {
    const { location } = await backUp()
    const bytes = readFileSync(pathOf(location))
    for (const text of ['SQLite format', 'portreeve.db', PASSPHRASE]) expect(bytes.includes(text)).toBe(false)
    const row = api.kernel.db.raw.prepare('SELECT data_key FROM backups').pluck().get()
    expect(row).toMatch(/^v1\./)
  })
  it('is restored into a throw-away copy and counted by verify', async () => {
    const { id } = await backUp()
    const asked = (await api.as('admin').post(`/api/backups/${id}/verify`)).body.data
    expect(asked.verification.status).toBe('running')
    await api.services.jobs.idle()
    const { verification, verified_at } = await read(id)
    expect(verification).toMatchObject({ status: 'succeeded', error: null })
    expect(verification.counts.users).toBe(
      api.kernel.db.raw.prepare('SELECT count(*) FROM users').pluck().get(),
    )
    expect([verification.objects > 10, verified_at === verification.at]).toEqual([true, true])
    expect(readdirSync(join(api.kernel.config.data_directory, 'work/backups/platform'))).toEqual([])
  })
  it('whose archive was changed is found out by verify', async () => {
    const { id, location } = await backUp()
    flip(pathOf(location))
    await api.as('admin').post(`/api/backups/${id}/verify`)
    await api.services.jobs.idle()
    expect(await read(id)).toMatchObject({
      verified_at: null,
      verification: { status: 'failed', objects: null, error: expect.stringContaining('checksum') },
    })
  })
  it('is refused while its destination has no passphrase', async () => {
    const closed = await createTestApi()
    const { status, body } = await closed.as('admin').post('/api/backups', { target: 'platform' })
    expect([status, body.error.message]).toEqual([422, expect.stringContaining('needs a passphrase')])
    await closed.close()
  })
  it.each(['owner', 'developer', 'viewer', 'outsider'] as const)('is nothing to %s', async (caller) => {
    const { id } = await backUp()
    const as = api.as(caller)
    expect((await as.post('/api/backups', { target: 'platform' })).status).toBe(403)
    expect((await as.get('/api/backups')).body.total).toBe(0)
    for (const answer of [
      await as.get(`/api/backups/${id}`),
      await as.get(`/api/backups/${id}/download`),
      await as.post(`/api/backups/${id}/verify`),
      await as.delete(`/api/backups/${id}`),
    ])
      expect(answer.status).toBe(404)
  })
  it('leaves no partial file on a full disk, says so, and deletes no older one', async () => {
    const { id: schedule } = (
      await api.as('admin').post('/api/backup-schedules', {
        name: 'one',
        target: 'platform',
        cron: '@daily',
        retention: { count: 1 },
      })
    ).body.data
    const run = async () => {
      const { id } = (await api.as('admin').post(`/api/backup-schedules/${schedule}/run`)).body.data
      await api.services.jobs.idle()
      return read(id)
    }
    expect((await run()).status).toBe('succeeded')
    const before = files()
    // Whatever is written next meets the kernel's own full device.
    api.kernel.clock.advance(1000)
    const asked = (await api.as('admin').post('/api/backups', { target: 'platform' })).body.data
    symlinkSync('/dev/full', `${pathOf(asked.location)}.partial`)
    await api.services.jobs.idle()
    const failed = await read(asked.id)
    expect([failed.status, failed.error, failed.size_bytes]).toEqual([
      'failed',
      expect.stringMatching(/disk.*full.*No partial backup was kept, and no older backup was deleted/),
      null,
    ])
    expect(files().sort()).toEqual(before.sort())
  })
})

describe('GET /api/backups/:id/download', () => {
  const fetchRange = (path: string, range?: string, if_range?: string) =>
    new Promise<{ status: number; headers: Record<string, unknown>; body: Buffer }>((resolve, reject) => {
      const headers = {
        authorization: 'Bearer test-admin',
        ...(range ? { range } : {}),
        ...(if_range ? { 'if-range': if_range } : {}),
      }
      get(new URL(path, api.url), { headers, agent: false }, async (response) => {
        const chunks: Buffer[] = []
        for await (const chunk of response) chunks.push(chunk as Buffer)
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) })
      }).on('error', reject)
    })
  it('is for no narrowed API key, which is shown no secrets elsewhere', async () => {
    const { id } = await backUp()
    for (const scope of ['read', 'deploy']) {
      const made = await api.as('admin').post('/api/auth/api-keys', { name: scope, scope })
      const headers = { 'x-api-key': made.body.data.key }
      const { status, body } = await api.request('GET', `/api/backups/${id}/download`, { headers })
      expect([status, body.error?.message]).toEqual([
        403,
        expect.stringContaining('Use one with full rights'),
      ])
    }
  })
  it('streams the archive, and goes on where it broke off', async () => {
    const { id, location, size_bytes, sha256 } = await backUp()
    const whole = readFileSync(pathOf(location))
    const path = `/api/backups/${id}/download`
    const all = await fetchRange(path)
    expect([all.status, all.body.equals(whole)]).toEqual([200, true])
    expect(all.headers).toMatchObject({
      'content-length': String(size_bytes),
      'accept-ranges': 'bytes',
      etag: `"${sha256}"`,
      'x-content-type-options': 'nosniff',
      'content-disposition': expect.stringMatching(/^attachment; filename="[\w.-]+\.tar\.zst\.enc"$/),
    })
    const rest = await fetchRange(path, 'bytes=1000-')
    expect([rest.status, rest.body.equals(whole.subarray(1000))]).toEqual([206, true])
    expect(rest.headers['content-range']).toBe(`bytes 1000-${size_bytes - 1}/${size_bytes}`)
    const part = await fetchRange(path, 'bytes=10-19')
    expect([part.status, part.body.equals(whole.subarray(10, 20))]).toEqual([206, true])
    expect((await fetchRange(path, 'bytes=-7')).body.equals(whole.subarray(-7))).toBe(true)
    expect((await fetchRange(path, 'bytes=0-1,5-6')).status).toBe(200)
    for (const behind of [`bytes=${size_bytes}-`, 'bytes=-0']) {
      const refused = await fetchRange(path, behind)
      expect([refused.status, refused.headers['content-range']]).toEqual([416, `bytes */${size_bytes}`])
      expect(JSON.parse(refused.body.toString()).error.code).toBe('RANGE_NOT_SATISFIABLE')
    }
    expect((await fetchRange(path, `bytes=${Array(500).fill('0-').join(',')}`)).body.length).toBe(size_bytes)
    expect((await fetchRange(path, 'bytes=10-19', `"${sha256}"`)).status).toBe(206)
    expect((await fetchRange(path, 'bytes=10-19', '"of another archive"')).body.equals(whole)).toBe(true)
  })
  it('never sends more than it promised: what goes on would be the answer to another request', async () => {
    const { id, location } = await backUp()
    const path = pathOf(location)
    const whole = readFileSync(path)
    writeFileSync(path, Buffer.concat([whole, Buffer.from('HTTP/1.1 200 OK\r\n\r\nmore')]))
    const { status, body } = await api.as('admin').get(`/api/backups/${id}/download`)
    expect([status, body.error.message]).toEqual([409, expect.stringContaining('not as long')])
    expect((await fetchRange(`/api/backups/${id}/download`, 'bytes=10-19')).body).toEqual(
      whole.subarray(10, 20),
    )
  })
  it('ends the connection where there is less than it promised', async () => {
    const { id, location, size_bytes } = await backUp()
    truncateSync(pathOf(location), size_bytes - 10)
    const { hostname, port, host } = new URL(api.url)
    const socket = connect(Number(port), hostname)
    socket.write(
      `GET /api/backups/${id}/download HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer test-admin\r\n\r\n`,
    )
    let head = ''
    for await (const chunk of socket) head ||= (chunk as Buffer).toString('latin1').toLowerCase()
    expect(head).toContain(`content-length: ${size_bytes}`)
  })
})

describe('a destination that does not answer as it should', () => {
  it.each([
    ['a download', (path: string) => api.as('admin').get(`${path}/download`)],
    ['a deletion', (path: string) => api.as('admin').delete(path)],
  ])('refuses %s with its reason, and nothing is forgotten', async (_what, ask) => {
    const { id } = await backUp()
    rmSync(folder, { recursive: true })
    // A link to itself.
    symlinkSync(folder, folder)
    const { status, body } = await ask(`/api/backups/${id}`)
    expect([status, body.error.message]).toEqual([
      409,
      expect.stringMatching(/^The destination does not work: /),
    ])
    expect((await read(id)).status).toBe('succeeded')
  })
})

it('a backup whose destination is another place by its end has not succeeded: its archive is not there', async () => {
  const stop = api.services.events.subscribe(({ type }) => {
    if (type !== 'backup.progress') return
    stop()
    api.kernel.db.sql(`UPDATE storage_providers SET config = '{"folder":"elsewhere"}'`).run()
  })
  expect(await backUp()).toMatchObject({
    status: 'failed',
    error: expect.stringContaining('not at its destination'),
  })
})

describe('DELETE /api/backups/:id', () => {
  it('takes the archive and its manifest along', async () => {
    const { id } = await backUp()
    expect(files()).toHaveLength(2)
    expect((await api.as('admin').delete(`/api/backups/${id}`)).body.data).toEqual({ id, deleted: true })
    expect([files(), (await api.as('admin').get(`/api/backups/${id}`)).status]).toEqual([[], 404])
  })
  it('keeps a destination from being removed while backups lie there', async () => {
    await backUp()
    const made = await api.as('admin').post('/api/storage-providers', {
      name: 'Other',
      kind: 'local',
      config: { folder: 'o' },
      is_default: true,
    })
    expect(made.status).toBe(201)
    const first = (await api.as('admin').get('/api/storage-providers')).body.data.at(-1)
    const refused = await api.as('admin').delete(`/api/storage-providers/${first.id}`)
    expect([refused.status, refused.body.error.message]).toEqual([
      409,
      expect.stringContaining('1 backups lie'),
    ])
  })
})

describe('POST /api/backups', () => {
  it.each([
    ['an unknown target', { target: 'planet' }, 422],
    ['a target without its id', { target: 'database' }, 422],
    ['a platform with an id', { target: 'platform', target_id: 'x' }, 422],
    ['a destination that is not there', { target: 'platform', destination_id: 'dst_x' }, 422],
  ])('refuses %s and leaves nothing', async (_what, body, status) => {
    const since = api.services.events.latest()
    expect((await api.as('admin').post('/api/backups', body)).status).toBe(status)
    expect([(await api.as('admin').get('/api/backups')).body.total, api.services.events.latest()]).toEqual([
      0,
      since,
    ])
  })
})

describe('schedules', () => {
  const make = (body: object = {}) =>
    api.as('admin').post('/api/backup-schedules', {
      name: 'Nightly',
      target: 'platform',
      cron: '30 3 * * *',
      retention: { count: 2 },
      ...body,
    })
  const list = async () => (await api.as('admin').get('/api/backup-schedules')).body.data
  const total = async () => (await api.as('admin').get('/api/backups?status=succeeded')).body.total
  /** Moves the clock to a time and lets the task look. */
  const passAt = async (at: string) => {
    api.kernel.clock.advance(Date.parse(at) - api.kernel.clock.now())
    await api.services.wake('backups')
    await api.services.jobs.idle()
  }
  const dayAfter = (days: number, time: string) => {
    const day = new Date(api.kernel.clock.now() + days * 86_400_000).toISOString().slice(0, 10)
    return `${day}T${time}Z`
  }
  it('of the platform are encrypted, whatever is said of them, as their backups are', async () => {
    const { id, encrypted } = (await make({ encrypted: false })).body.data
    const changed = await api.as('admin').put(`/api/backup-schedules/${id}`, { encrypted: false })
    expect([encrypted, changed.body.data.encrypted]).toEqual([true, true])
  })
  it('of the platform name a destination whose archives open elsewhere, when they are made and changed', async () => {
    const plain = (
      await api.as('admin').post('/api/storage-providers', {
        name: 'Plain',
        kind: 'local',
        config: { folder: 'plain' },
      })
    ).body.data.id
    expect((await make({ destination_id: plain })).body.error).toMatchObject({
      code: 'VALIDATION_ERROR',
      details: [{ path: 'destination_id' }],
    })
    const { id } = (await make()).body.data
    const change = await api.as('admin').put(`/api/backup-schedules/${id}`, { destination_id: plain })
    expect([change.status, (await list())[0].destination_id]).toEqual([422, null])
  })
  it('tell when they last ran also of a run by hand, and keep their slot', async () => {
    const { id, next_run_at } = (await make()).body.data
    const { created_at } = (await api.as('admin').post(`/api/backup-schedules/${id}/run`)).body.data
    expect((await list())[0]).toMatchObject({ last_run_at: created_at, next_run_at })
  })
  it('run in their slot, once, and keep what their retention says', async () => {
    const { status, body } = await make()
    expect([status, body.data.next_run_at.slice(11)]).toEqual([201, '03:30:00.000Z'])
    for (let day = 0; day < 4; day += 1) {
      const [{ next_run_at }] = await list()
      await passAt(next_run_at)
      await passAt(new Date(Date.parse(next_run_at) + 30_000).toISOString())
      expect(await total()).toBe(Math.min(day + 1, 2))
    }
    expect(files()).toHaveLength(4)
  })
  it('delete what they no longer keep also beyond one that its destination does not let go, and say so', async () => {
    const { id } = (await make({ retention: {} })).body.data
    for (let day = 0; day < 4; day += 1) await passAt((await list())[0].next_run_at)
    const rows = (await api.as('admin').get('/api/backups?status=succeeded')).body.data
    const held = pathOf(rows[1].location)
    rmSync(held)
    // A folder in its place is nothing that is deleted as a file is.
    mkdirSync(join(held, 'held'), { recursive: true })
    await api.as('admin').put(`/api/backup-schedules/${id}`, { retention: { count: 1 } })
    await passAt((await list())[0].next_run_at)
    const left = (await api.as('admin').get('/api/backups?status=succeeded')).body.data
    expect(left.map((one: { id: string }) => one.id)).toEqual([expect.any(String), rows[1].id])
    const [job] = (await api.as('admin').get('/api/system/jobs?kind=backup.create')).body.data
    const { steps } = (await api.as('admin').get(`/api/system/jobs/${job.id}`)).body.data
    expect(steps.at(-1)).toMatchObject({ name: 'retain', status: 'failed' })
  })
  it('that fail are known for as long as jobs are, and good ones stay', async () => {
    const { id } = (await make({ retention: {} })).body.data
    const run = async () => {
      const made = (await api.as('admin').post(`/api/backup-schedules/${id}/run`)).body.data.id
      await api.services.jobs.idle()
      return made as string
    }
    const good = await run()
    rmSync(folder, { recursive: true })
    writeFileSync(folder, 'no folder')
    const bad = await run()
    const known = async () =>
      (await api.as('admin').get('/api/backups')).body.data.map((one: { id: string }) => one.id).sort()
    await api.services.cleanup()
    expect(await known()).toEqual([good, bad].sort())
    for (let day = 0; day < 100; day += 1) {
      api.kernel.clock.advance(82_800_000)
      await api.services.cleanup()
    }
    expect(await known()).toEqual([good])
  })
  it('that were missed run once afterwards, and it is told', async () => {
    await make()
    const since = api.services.events.latest()
    await passAt(dayAfter(5, '12:00:00.000'))
    expect(await total()).toBe(1)
    expect(api.events(since).filter(({ type }) => type === 'backup.missed')).toHaveLength(1)
    const [schedule] = await list()
    expect([
      schedule.last_missed_at !== null,
      Date.parse(schedule.next_run_at) > api.kernel.clock.now(),
    ]).toEqual([true, true])
  })
  it('go on after the clock of the server was far ahead for a while', async () => {
    await make()
    const right = api.kernel.clock.now()
    const at = (ms: number) => passAt(new Date(ms).toISOString())
    await at(right + 3650 * 86_400_000)
    expect(await total()).toBe(1)
    api.kernel.clock.set(new Date(right).toISOString())
    for (const minute of [1, 2]) await at(right + minute * 60_000)
    const [{ next_run_at }] = await list()
    expect(Date.parse(next_run_at) - right).toBeLessThan(86_400_000)
    await at(Date.parse(next_run_at))
    expect(await total()).toBe(2)
  })
  it.each([
    ['far ahead', '2036-01-01T00:00:00.000Z'],
    ['far back', '2020-01-01T00:00:00.000Z'],
  ])('keep the one that was made last, also after or while the clock was %s', async (_how, wrong) => {
    const { id } = (await make({ retention: { count: 2 } })).body.data
    const made: string[] = []
    const oneMore = async () => {
      made.push((await api.as('admin').post(`/api/backup-schedules/${id}/run`)).body.data.id)
      await api.services.jobs.idle()
    }
    const kept = () =>
      api.kernel.db.sql(`SELECT id FROM backups WHERE status = 'succeeded' ORDER BY rowid`).pluck().all()
    await oneMore()
    const right = api.kernel.clock.iso()
    api.kernel.clock.set(wrong)
    for (const _ of [1, 2]) await oneMore()
    expect(kept()).toEqual(made.slice(-2))
    api.kernel.clock.set(right)
    for (const _ of [1, 2, 3]) {
      await oneMore()
      expect(kept()).toEqual(made.slice(-2))
    }
    expect(files()).toHaveLength(4)
  })
  it('delete what they no longer keep also where Portreeve was killed after the backup counted', async () => {
    const { id } = (await make({ retention: {} })).body.data
    for (const _ of [1, 2]) {
      await api.as('admin').post(`/api/backup-schedules/${id}/run`)
      await api.services.jobs.idle()
    }
    await api.as('admin').put(`/api/backup-schedules/${id}`, { retention: { count: 1 } })
    const [job] = (await api.as('admin').get('/api/system/jobs?kind=backup.create')).body.data
    const { db } = api.kernel
    db.sql(`UPDATE jobs SET status = 'running', finished_at = NULL WHERE id = ?`).run(job.id)
    db.sql(`UPDATE job_steps SET status = 'running' WHERE job_id = ? AND name = 'retain'`).run(job.id)
    await api.services.jobs.stop()
    api.services.jobs.start()
    await api.services.jobs.idle()
    const { steps } = (await api.as('admin').get(`/api/system/jobs/${job.id}`)).body.data
    expect([await total(), steps.at(-1)]).toMatchObject([1, { name: 'retain', status: 'succeeded' }])
  })
  it('delete nothing by its age for a day after the clock went far ahead, since it may be wrong', async () => {
    await make({ retention: { days: 7 } })
    const oneMore = async () => {
      await passAt((await list())[0].next_run_at)
      return total()
    }
    for (const made of [1, 2, 3]) expect(await oneMore()).toBe(made)
    const right = api.kernel.clock.now()
    api.kernel.clock.set('2036-01-01T00:00:00.000Z')
    await passAt('2036-01-01T00:01:00.000Z')
    expect(await total()).toBe(4)
    api.kernel.clock.set(new Date(right).toISOString())
    for (const minute of [1, 2]) await passAt(new Date(right + minute * 60_000).toISOString())
    for (const made of [5, 6]) expect(await oneMore()).toBe(made)
  })
  it('go on deleting by age where that time has really passed, a day later', async () => {
    await make({ retention: { days: 7 } })
    const [{ next_run_at }] = await list()
    await passAt(next_run_at)
    await passAt(dayAfter(30, '12:00:00.000'))
    expect(await total()).toBe(2)
    for (let hour = 0; hour < 48; hour += 1)
      await passAt(new Date(api.kernel.clock.now() + 3_600_000).toISOString())
    expect([await total(), (await api.as('admin').get('/api/backups')).body.data.length]).toEqual([3, 3])
  })
  it('are read in their time zone, also where its clock changes', async () => {
    const { body } = await make({ timezone: 'Europe/Berlin', cron: '0 12 * * *' })
    const summer = new Intl.DateTimeFormat('en-GB', {
      timeZone: 'Europe/Berlin',
      hour: '2-digit',
      minute: '2-digit',
    }).format(new Date(body.data.next_run_at))
    expect(summer).toBe('12:00')
  })
  it('show on their backups until when they keep them, also after they were changed', async () => {
    const { id } = (await make({ retention: { days: 30 } })).body.data
    const { body } = await api.as('admin').post(`/api/backup-schedules/${id}/run`)
    await api.services.jobs.idle()
    const lasts = async () => {
      const { expires_at, created_at } = (await api.as('admin').get(`/api/backups/${body.data.id}`)).body.data
      return expires_at && (Date.parse(expires_at) - Date.parse(created_at)) / 86_400_000
    }
    expect(await lasts()).toBe(30)
    await api.as('admin').put(`/api/backup-schedules/${id}`, { retention: { days: 10 } })
    expect(await lasts()).toBe(10)
    await api.as('admin').put(`/api/backup-schedules/${id}`, { retention: { count: 3 } })
    expect(await lasts()).toBeNull()
  })
  it('go to a destination that there is: an empty name is none', async () => {
    const nowhere = { destination_id: '' }
    const { id } = (await make()).body.data
    const answers = [
      await make(nowhere),
      await api.as('admin').put(`/api/backup-schedules/${id}`, nowhere),
      await api.as('admin').post('/api/backups', { target: 'platform', ...nowhere }),
    ]
    for (const { status, body } of answers)
      expect([status, body.error?.details?.[0].path]).toEqual([422, 'destination_id'])
  })
  it('rest while they are paused', async () => {
    const { id } = (await make()).body.data
    const paused = await api.as('admin').put(`/api/backup-schedules/${id}`, { enabled: false })
    expect(paused.body.data.next_run_at).toBeNull()
    await passAt(dayAfter(3, '12:00:00.000'))
    expect(await total()).toBe(0)
    const resumed = await api.as('admin').put(`/api/backup-schedules/${id}`, { enabled: true })
    expect(Date.parse(resumed.body.data.next_run_at)).toBeGreaterThan(api.kernel.clock.now())
  })
  it('go, and their backups stay', async () => {
    const { id } = (await make()).body.data
    await api.as('admin').post(`/api/backup-schedules/${id}/run`)
    await api.services.jobs.idle()
    expect((await api.as('admin').delete(`/api/backup-schedules/${id}`)).status).toBe(200)
    expect((await api.as('admin').get('/api/backups')).body.data).toMatchObject([{ schedule_id: null }])
  })
  it.each([
    ['a pattern that never comes', { cron: '0 0 31 2 *' }, 'cron'],
    ['seconds', { cron: '* * * * * *' }, 'cron'],
    ['nonsense', { cron: 'at noon' }, 'cron'],
    ['a zone that is not there', { timezone: 'Mars/Olympus' }, 'timezone'],
    ['a retention of nothing', { retention: { count: 0 } }, 'retention'],
  ])('refuse %s with 422', async (_what, body, field) => {
    const { status, body: answer } = await make(body)
    expect([status, answer.error.message.split(/[.:]/)[0]]).toEqual([422, field])
  })
  it('by the ten thousand cost an idle look nothing', async () => {
    const { id } = (await make()).body.data
    api.kernel.db.raw.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
      INSERT INTO backup_schedules SELECT 'sch_' || i, name, target, target_id, project_id, cron, timezone, retention,
        destination_id, encrypted, pause_app, enabled, '2999-01-01T00:00:00.000Z', NULL, NULL, NULL, created_at, updated_at
        FROM backup_schedules, n WHERE id = '${id}'`)
    const plan = api.kernel.db.raw
      .prepare(
        `EXPLAIN QUERY PLAN SELECT * FROM backup_schedules WHERE enabled = 1 AND next_run_at <= '2026' ORDER BY next_run_at`,
      )
      .all() as { detail: string }[]
    expect(plan.map(({ detail }) => detail).join()).toContain('backup_schedules_due')
    expect(await api.services.backups.schedules.pass()).toBe(0)
  })
  /** As many as one look begins, in the project of another, each due for longer than any other. */
  const crowd = (id: string, count: number, project_id: string) =>
    api.kernel.db.raw.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
      INSERT INTO backup_schedules SELECT 'sch_' || i, name, target, target_id, '${project_id}', cron, timezone, retention,
        destination_id, encrypted, pause_app, enabled, '2000-01-01T00:00:00.000Z', NULL, NULL, NULL, created_at, updated_at
        FROM backup_schedules, n WHERE id = '${id}'`)
  it('of one project keep that of another waiting for no look, however many are due before it', async () => {
    const { id, next_run_at } = (await make()).body.data
    crowd(id, 1000, 'prj_crowd')
    await passAt(next_run_at)
    const row = api.kernel.db.raw.prepare('SELECT last_run_at FROM backup_schedules WHERE id = ?').get(id)
    expect(row).toEqual({ last_run_at: next_run_at })
  })
  it('are begun in pieces, so that nobody waits for all of them', async () => {
    const { id } = (await make()).body.data
    crowd(id, 500, 'prj_crowd')
    let was_ended = false
    const pass = api.services.backups.schedules.pass().then(() => (was_ended = true))
    await new Promise((resolve) => setImmediate(resolve))
    expect(was_ended).toBe(false)
    await pass
  })
  it('are 500 in a project at most, since each may be due every minute', async () => {
    const { id } = (await make()).body.data
    crowd(id, 499, 'platform')
    const { status, body } = await make()
    expect([status, body.error.message]).toEqual([
      409,
      'A project may have 500 backup schedules at most. Delete one first.',
    ])
    await api.as('admin').delete(`/api/backup-schedules/${id}`)
    expect((await make()).status).toBe(201)
  })
})
