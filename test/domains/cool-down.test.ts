import { beforeEach, describe, expect, it } from 'vitest'
import { add, addProven, api, createApp, otherProject, settled, useDomains } from './harness.ts'

useDomains()
let theirs: string
/** A second app of the project that gives the name up. */
let blog: string
beforeEach(async () => {
  blog = await createApp('blog')
  theirs = (await otherProject()).app_id
  const domain = await addProven('example.com')
  await api.as('admin').delete(`/api/domains/${domain.id}`)
})
const find = async (id: string) => (await api.as('admin').get(`/api/domains/${id}`)).body.data

describe('a name that another project has removed', () => {
  it('is kept from an administrator too, who learns what ends that', async () => {
    const { status, body } = await add('example.com', {}, theirs)
    expect([status, body.error.message]).toEqual([409, expect.stringContaining('end_cool_down')])
  })
  it('is one of the newest thousand of that project, or is free', async () => {
    const { db, clock } = api.kernel
    const { project_id } = (await api.as('admin').get(`/api/apps/${blog}`)).body.data
    const until = new Date(clock.now() + 7 * 86_400_000 + 1000).toISOString()
    db.tx(() => {
      for (let n = 0; n < 999; n += 1)
        db.sql('INSERT INTO domain_cooldowns VALUES (?, ?, ?)').run(`n${n}.example.net`, project_id, until)
    })
    expect((await add('example.com', {}, theirs)).status).toBe(409)
    const one_more = await addProven('one-more.example.org')
    await api.as('admin').delete(`/api/domains/${one_more.id}`)
    expect(db.sql('SELECT count(*) FROM domain_cooldowns').pluck().get()).toBe(1000)
    expect((await add('example.com', {}, theirs)).status).toBe(201)
    expect((await add('one-more.example.org', {}, theirs)).status).toBe(409)
  })
  it('goes to another project when an administrator says so, once DNS proves it, and that is on record', async () => {
    const { status, body } = await add('example.com', { end_cool_down: true }, theirs)
    expect(status).toBe(201)
    await settled()
    expect(await find(body.data.id)).toMatchObject({ status: 'active', hostname: 'example.com' })
    const { body: trail } = await api.as('admin').get(`/api/audit-logs?resource=${body.data.id}`)
    expect(trail.data.find(({ action }: { action: string }) => action === 'domain.create')).toMatchObject({
      after: { end_cool_down: true },
    })
    expect((await add('shop.example.com', {}, blog)).status).toBe(409)
  })
  it('takes what lies below it along, not what lies above it', async () => {
    const below = await add('shop.example.com', { end_cool_down: true }, theirs)
    expect(below.status).toBe(409)
    expect((await add('example.com', { end_cool_down: true }, theirs)).status).toBe(201)
    expect((await add('shop.example.com', {}, theirs)).status).toBe(201)
  })
  it('is not freed by anybody else, nor by a request that fails', async () => {
    const { status, body } = await api
      .as('developer')
      .post('/api/domains', { app_id: blog, hostname: 'example.com', end_cool_down: true })
    expect([status, body.error.code]).toEqual([403, 'FORBIDDEN'])
    expect(
      (
        await add(
          'example.com',
          {
            end_cool_down: true,
            hsts: { max_age: 1 },
            headers: { 'Strict-Transport-Security': 'max-age=2' },
          },
          theirs,
        )
      ).status,
    ).toBe(422)
    expect((await add('example.com', {}, theirs)).status).toBe(409)
  })
  it('never takes a name that another project has', async () => {
    await add('example.com', {}, blog)
    await settled()
    const { status, body } = await add('example.com', { end_cool_down: true }, theirs)
    expect([status, body.error.message]).toEqual([409, expect.stringContaining('belongs to another project')])
  })
})

describe('a name that a project keeps for itself', () => {
  const move = async (id: string) => {
    const project_id = (await api.as('admin').get(`/api/apps/${theirs}`)).body.data.project_id
    return api.as('admin').post(`/api/apps/${id}/move`, { project_id })
  }
  const remove = (id: string) => api.as('admin').delete(`/api/domains/${id}`)
  it('is not given up with one of its paths, so that its app can be moved', async () => {
    const { body } = await add('example.com', {}, blog)
    await settled()
    const path = await add('example.com', { path: '/api' }, blog)
    await settled()
    await remove(path.body.data.id)
    expect((await find(body.data.id)).status).toBe('active')
    expect((await move(blog)).status).toBe(200)
  })
  it('lets its own app go, also when a name above or below it was removed', async () => {
    const kept = await add('example.com', { path: '/shop' }, blog)
    const below = await addProven('www.example.com')
    await settled()
    await remove(below.id)
    expect((await find(kept.body.data.id)).status).toBe('active')
    expect((await move(blog)).status).toBe(200)
  })
  it('is named where it stops somebody', async () => {
    const { body } = await add('shop.example.com', {}, theirs)
    expect(body.error.message).toMatch(/^shop\.example\.com, or a name above or below it,/)
  })
})

describe('the basic authentication of a domain', () => {
  const change = (id: string, basic_auth: unknown) =>
    api.as('developer').put(`/api/domains/${id}`, { basic_auth })
  const digestOf = (id: string) => api.fakes.ingress.routes.get(id)?.basic_auth
  async function guarded(): Promise<string> {
    const { body } = await add(
      'example.com',
      { basic_auth: { username: 'ada', password: 'long enough' } },
      blog,
    )
    await settled()
    return body.data.id as string
  }
  it('stays as it is when it is sent back as it was read', async () => {
    const id = await guarded()
    const before = digestOf(id)
    const { status, body } = await change(id, (await find(id)).basic_auth)
    await settled()
    expect([status, body.data.basic_auth]).toEqual([200, { username: 'ada' }])
    expect(before).toBeDefined()
    expect(digestOf(id)).toEqual(before)
  })
  it('needs a password for another user, and where none was set', async () => {
    const id = await guarded()
    for (const [basic_auth, set] of [
      [{ username: 'bob' }, { username: 'ada' }],
      [null, null],
      [{ username: 'ada' }, null],
    ] as const) {
      const { status, body } = await change(id, basic_auth)
      expect(
        status === 200 ? body.data.basic_auth : body.error.details[0].path,
        JSON.stringify(basic_auth),
      ).toEqual(basic_auth === null ? null : 'basic_auth.password')
      expect((await find(id)).basic_auth).toEqual(set)
    }
  })
  it('takes a new password', async () => {
    const id = await guarded()
    const before = digestOf(id)
    expect((await change(id, { username: 'ada', password: 'another long one' })).status).toBe(200)
    await settled()
    expect(digestOf(id)).toBeDefined()
    expect(digestOf(id)).not.toEqual(before)
  })
})
