import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exportLines } from '#server/audit/export'
import { PLATFORM } from '#server/kernel/access'
import { createTestApi, type TestApi } from '#test/support/api'

let api: TestApi
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
})
afterAll(() => api.close())
const lines = async (query = '') =>
  (await api.as('admin').get(`/api/audit-logs?per_page=100${query}`)).body.data as {
    action: string
    actor: { id: string; method: string }
    address: string
    request_id: string
    after: object
    resource: { name: string | null; exists: boolean | null }
  }[]

describe('the audit log', () => {
  it('tells who changed what, how, from where and in which request', async () => {
    const answer = await api.as('owner').post('/api/projects', { name: 'audited' })
    const [member, created] = await lines('&action=project.')
    expect(created).toMatchObject({
      action: 'project.create',
      actor: { id: api.actor('owner').user_id, method: 'bearer' },
      address: '127.0.0.1',
      request_id: answer.headers.get('x-request-id'),
      after: { name: 'audited' },
    })
    expect(member!.action).toBe('project.member_add')
  })
  it('never holds what is called a secret, however deep a domain hands it in', async () => {
    const after = { password: 'canary-1', config: { api_token: 'canary-2', list: [{ secret: 'canary-3' }] } }
    api.services.audit.record(PLATFORM, {
      action: 'deep.update',
      resource_type: 'settings',
      resource_id: 'deep',
      project_id: null,
      before: after,
      after: { ...after, name: 'kept' },
    })
    const [line] = await lines('&action=deep.update')
    expect(line!.after).toEqual({
      password: '[secret]',
      config: { api_token: '[secret]', list: [{ secret: '[secret]' }] },
      name: 'kept',
    })
    expect(JSON.stringify(api.kernel.db.sql('SELECT * FROM audit_log').all())).not.toContain('canary')
  })
  it('keeps of what is large its size: a page of it stays small', async () => {
    const args = Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`ARG_${n}`, 'x'.repeat(4000)]))
    const answer = await api.as('owner').post('/api/apps', {
      name: 'large',
      source: 'upload',
      build: { args, install_command: 'npm ci' },
    })
    expect(answer.status).toBe(201)
    const [line] = await lines('&action=app.create')
    expect(line!.after).toMatchObject({ name: 'large' })
    expect(JSON.stringify(line!.after)).toMatch(/\[4\d{4} characters\]/)
    expect(JSON.stringify(line!.after).length).toBeLessThan(16_384)
    const stored = await api.as('owner').get(`/api/apps/${answer.body.data.id}`)
    expect(stored.body.data.build.args).toEqual(args)
    const larger = { ...args, ...Object.fromEntries(Object.entries(args).map(([k, v]) => [`${k}_B`, v])) }
    expect(
      (await api.as('owner').post('/api/apps', { name: 'larger', source: 'upload', build: { args: larger } }))
        .body.error.details,
    ).toEqual([{ path: 'build.args', message: 'must have at most 65536 characters in all.' }])
  })
  it('is written with the change or not at all', () => {
    const count = () => api.kernel.db.sql('SELECT count(*) FROM audit_log').pluck().get()
    const before = count()
    expect(() =>
      api.kernel.db.tx(() => {
        api.services.audit.record(PLATFORM, {
          action: 'app.create',
          resource_type: 'app',
          resource_id: null,
          project_id: null,
        })
        throw new Error('the change failed')
      }),
    ).toThrow('the change failed')
    expect(count()).toBe(before)
  })
  it('cannot be changed or deleted, by nobody', () => {
    for (const sql of [
      `UPDATE audit_log SET action = 'x'`,
      'DELETE FROM audit_log',
      `DELETE FROM audit_log WHERE seq = 1`,
    ])
      expect(() => api.kernel.db.sql(sql).run()).toThrow('The audit log cannot be changed.')
    expect(() =>
      api.kernel.db.sql(`INSERT OR REPLACE INTO audit_log SELECT * FROM audit_log LIMIT 1`).run(),
    ).toThrow()
  })
  it('records refused requests, and not more than a flood may write', async () => {
    await api.as('viewer').post('/api/ssh-keys/generate', { name: 'x' })
    expect(await lines('&action=access.forbidden')).toMatchObject([
      {
        actor: { id: api.actor('viewer').user_id },
        after: { request: 'POST /api/ssh-keys/generate', needed: 'developer' },
      },
    ])
    for (let i = 0; i < 60; i += 1) await api.request('GET', '/api/apps')
    expect((await lines('&action=access.unauthorized')).length).toBeLessThanOrEqual(20)
    api.fakes.clock.advance(60_000)
    await api.request('GET', '/api/apps')
    expect((await lines('&action=access.refusals_left_out'))[0]!.after).toMatchObject({
      left_out: expect.any(Number),
    })
  })
  it('says of nobody that they used no credential, whether the endpoint asks for one or not', async () => {
    for (let count = 0; count < 6; count++)
      await api.request('POST', '/api/auth/login', {
        body: { email: 'nobody@example.test', password: 'wrong' },
      })
    expect((await lines('&action=access.rate_limited'))[0]).toMatchObject({
      actor: { id: null, method: 'none' },
    })
    api.fakes.clock.advance(60_000)
  })
  it('records failed logins without what was typed', async () => {
    await api.request('POST', '/api/auth/login', {
      body: { email: 'my password by mistake', password: 'hunter2hunter2' },
    })
    const [line] = await lines('&action=login.failed')
    expect(line).toMatchObject({ action: 'login.failed', actor: { id: null, method: 'none' } })
    expect(JSON.stringify(line)).not.toMatch(/mistake|hunter2/)
  })
  it('finds by actor, action, kind and time, and refuses what is no filter', async () => {
    expect(
      (await lines(`&actor=${api.actor('owner').user_id}`)).every(
        ({ actor }) => actor.id === api.actor('owner').user_id,
      ),
    ).toBe(true)
    expect((await lines('&resource=project')).length).toBe(2)
    expect(await lines('&from=2030-01-01T00:00:00Z')).toEqual([])
    expect(await lines('&to=2020-01-01T00:00:00Z')).toEqual([])
    for (const query of ['from=yesterday', 'to=2030-01-01T00:00:00%2B05', 'format=xml', 'foo=1'])
      expect((await api.as('admin').get(`/api/audit-logs?${query}`)).status).toBe(400)
  })
  it('exports every line as CSV that no spreadsheet takes for a formula, and as NDJSON, without raw control characters', async () => {
    await api
      .as('owner')
      .post('/api/projects', { name: 'x', description: '=HYPERLINK("http://evil")\n\u001b[31mred' })
    api.services.audit.record(
      { ...PLATFORM, email: '=cmd|calc' },
      { action: 'app.create', resource_type: 'app', resource_id: null, project_id: null },
    )
    const total = (await api.as('admin').get('/api/audit-logs')).body.total as number
    const csv = await api.as('admin').get('/api/audit-logs?format=csv')
    expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(csv.headers.get('content-disposition')).toBe('attachment; filename="audit-log.csv"')
    const rows = csv.text.trimEnd().split('\r\n')
    expect(rows).toHaveLength(total + 1)
    expect(csv.text).toContain(`"'=cmd|calc"`)
    const upwards = await api.as('admin').get('/api/audit-logs?format=csv&sort=created_at&per_page=1')
    expect(upwards.text.trimEnd().split('\r\n').slice(1)).toEqual(rows.slice(1).reverse())
    const ndjson = await fetch(`${api.url}/api/audit-logs?format=ndjson`, {
      headers: { authorization: 'Bearer test-admin' },
    })
    expect(ndjson.headers.get('content-type')).toBe('application/x-ndjson')
    const ndjson_text = await ndjson.text()
    expect(
      ndjson_text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as object),
    ).toHaveLength(total)
    for (const text of [csv.text.replaceAll('\r\n', ''), ndjson_text.replaceAll('\n', '')])
      expect(/[\u0000-\u001f]/.test(text)).toBe(false)
  })
  it('exports in pieces between which others are served, however quickly they are taken', async () => {
    for (let count = 0; count < 200; count += 1)
      api.services.audit.record(PLATFORM, {
        action: 'app.update',
        resource_type: 'app',
        resource_id: null,
        project_id: null,
      })
    let turns = 0
    let next = setImmediate(function count() {
      turns += 1
      next = setImmediate(count)
    })
    let exported = ''
    for await (const text of exportLines(api.services.audit.pieces({}), 'ndjson', 'usr').stream)
      exported += text
    clearImmediate(next)
    const written = exported.split('\n').length - 1
    expect(written).toBe(api.services.audit.page({}, 1, 0).total)
    expect(turns).toBeGreaterThanOrEqual(Math.floor(written / 50))
  })
  it('makes one piece of all exports that are under way before others are served', async () => {
    let round = 0
    let next = setImmediate(function count() {
      round += 1
      next = setImmediate(count)
    })
    const rounds: number[] = []
    function* pieces() {
      for (let count = 0; count < 5; count += 1) {
        rounds.push(round)
        yield []
      }
    }
    const read = async (owner: string) => {
      for await (const _ of exportLines(pieces(), 'csv', owner).stream);
    }
    await Promise.all(Array.from({ length: 40 }, (_, n) => read(n % 2 ? 'usr_one' : 'usr_other')))
    clearImmediate(next)
    expect(rounds).toHaveLength(40 * 5)
    expect(new Set(rounds).size).toBe(rounds.length)
  })
  it('looks through a bounded part of the trail at once for what matches nowhere', () => {
    const { db } = api.kernel
    const last = db.sql('SELECT max(seq) FROM audit_log').pluck().get() as number
    db.sql(
      `INSERT INTO audit_log (seq, id, created_at, method, action, resource_type)
       VALUES (?, 'aud_far', '2026-01-31T12:00:00.000Z', 'system', 'app.create', 'app')`,
    ).run(last + 100_000)
    for (const descending of [true, false]) {
      const sort = [{ column: 'created_at', descending }]
      const nothing = [...api.services.audit.pieces({ action: 'no.such' }, sort)]
      expect(nothing.flat()).toEqual([])
      expect(nothing.length).toBeGreaterThanOrEqual(10)
      const found = [...api.services.audit.pieces({ action: 'app.create' }, sort)].flat().map(({ id }) => id)
      expect(found.at(descending ? 0 : -1)).toBe('aud_far')
      expect(found).toHaveLength(api.services.audit.page({ action: 'app.create' }, 1, 0).total)
    }
  })
  it('shows a project owner the lines of that project only', async () => {
    const project = (await api.as('owner').post('/api/projects', { name: 'mine' })).body.data
    const answer = await api.as('owner').get(`/api/projects/${project.id}/audit-logs`)
    expect(answer.body.data.map(({ project_id }: { project_id: string }) => project_id)).toEqual([
      project.id,
      project.id,
    ])
    expect((await api.as('owner').get('/api/audit-logs')).status).toBe(403)
  })
  it('forgets what is older than the retention, and nothing else', async () => {
    const before = (await api.as('admin').get('/api/audit-logs')).body.total as number
    api.fakes.clock.advance(10 * 86_400_000)
    await api.as('owner').post('/api/projects', { name: 'later' })
    expect(api.services.audit.prune(365)).toBe(0)
    expect(api.services.audit.prune(9)).toBe(before)
    expect((await api.as('admin').get('/api/audit-logs')).body.total).toBe(2)
    expect(() => api.kernel.db.sql('DELETE FROM audit_log').run()).toThrow('The audit log cannot be changed.')
  })
  it('calls what was changed as it was called then, also once it is gone', async () => {
    const { id } = (await api.as('owner').post('/api/projects', { name: 'before' })).body.data
    await api.as('owner').put(`/api/projects/${id}`, { name: 'after' })
    const told = async () =>
      (await lines(`&resource=${id}`)).map(({ action, resource: { name, exists } }) => [action, name, exists])
    expect(await told()).toEqual([
      ['project.update', 'after', true],
      ['project.member_add', 'before', true],
      ['project.create', 'before', true],
    ])
    await api.as('owner').delete(`/api/projects/${id}`)
    expect((await told())[0]).toEqual(['project.delete', 'after', false])
    const [export_line] = (await api.as('admin').get(`/api/audit-logs?format=csv&resource=${id}`)).text
      .split('\r\n')
      .slice(1)
    expect(export_line).toContain(`"${id}","after"`)
  })
  it('finds a name within many lines that do not tell it', () => {
    const record = (action: string, after?: Record<string, unknown>) =>
      api.services.audit.record(PLATFORM, {
        action,
        resource_type: 'volume',
        resource_id: 'vol_01234567890123456789',
        project_id: null,
        ...(after ? { after } : {}),
      })
    record('volume.create', { name: 'uploads' })
    for (let count = 0; count < 120; count += 1) record('volume.measure')
    const [newest] = api.services.audit.page({ resource: 'vol_01234567890123456789' }, 1, 0).rows
    expect(newest!.resource).toMatchObject({ name: 'uploads', exists: false })
  })
})
