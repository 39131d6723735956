import { describe, expect, it } from 'vitest'
import {
  add,
  addProven,
  addresses,
  api,
  app_id,
  createApp,
  DAY_MS,
  otherProject,
  settled,
  textOf,
  verify,
  useDomains,
} from './harness.ts'

useDomains()

/** Time as it passes: a clock that went ahead by days at once may be wrong. */
const threeDays = async () => {
  for (let half_days = 0; half_days < 6; half_days += 1) {
    api.fakes.clock.advance(DAY_MS / 2)
    await api.services.domains.checks.pass()
  }
}
describe('who may have a name', () => {
  it('refuses the same name to another project with 409 that does not say whose it is', async () => {
    await addProven('shop.example.com')
    const theirs = await otherProject()
    const { status, text } = await add('shop.example.com', {}, theirs.app_id)
    expect(status).toBe(409)
    expect(text).not.toMatch(/default|prj_|app_|dom_/)
  })
  it.each([
    ['a name below a proven one', 'example.com', 'shop.example.com'],
    ['a name above a proven one', 'shop.example.com', 'example.com'],
    ['a wildcard above a proven one', 'shop.example.com', '*.example.com'],
    ['a name that a wildcard covers', '*.example.com', 'shop.example.com'],
    ['the name that a wildcard stands below', '*.example.com', 'example.com'],
    ['a name deep below a wildcard', '*.example.com', 'a.b.example.com'],
  ])('refuses %s to another project', async (_what, first, second) => {
    await addProven(first)
    const theirs = await otherProject()
    expect((await add(second, {}, theirs.app_id)).status).toBe(409)
    expect((await add(second)).status).toBe(201)
  })
  it.each(['shop.example.com', '*.example.com'])(
    'refuses a www pair whose other name stands above or below %s of another project',
    async (first) => {
      await addProven(first)
      const theirs = await otherProject()
      for (const name of ['example.com', 'a.www.example.com']) api.fakes.dns.set(name, { A: addresses })
      expect((await add('www.example.com', { www: 'to_apex' }, theirs.app_id)).status).toBe(409)
    },
  )
  it.each([
    ['www.example.com', 'to_apex'],
    ['www.example.com', 'to_www'],
    ['example.com', 'to_www'],
  ])(
    'refuses names above and below both names of the proven pair %s (%s) to another project',
    async (hostname, www) => {
      for (const name of ['example.com', 'www.example.com']) api.fakes.dns.set(name, { A: addresses })
      await addProven(hostname, { www })
      const theirs = await otherProject()
      for (const name of [
        'example.com',
        'www.example.com',
        'shop.example.com',
        '*.example.com',
        'a.www.example.com',
      ])
        expect([name, (await add(name, {}, theirs.app_id)).status]).toEqual([name, 409])
    },
  )
  describe('an unproven claim', () => {
    it.each([
      ['example.com', 'example.com'],
      ['example.com', 'shop.example.com'],
      ['shop.example.com', 'example.com'],
      ['*.example.com', 'shop.example.com'],
      ['www.example.com', 'example.com'],
    ])(
      'of %s keeps nobody from %s: the text decides, since addresses do not tell whose a name is',
      async (squatted, desired) => {
        const squatter = (await add(squatted)).body.data
        const theirs = await otherProject()
        api.fakes.dns.set(squatted, { A: addresses })
        const owner = await addProven(desired, {}, theirs.app_id)
        expect(owner).toMatchObject({
          status: 'pending',
          verification: {
            proven_by: null,
            points_here: true,
            message: expect.stringMatching(
              /another project of this installation asks for it.*Set the TXT record/,
            ),
          },
        })
        expect((await verify(squatter.id)).status).toBe('pending')
        api.fakes.dns.set(`_portreeve.${desired.replace('*.', '')}`, { TXT: [textOf(owner)] })
        expect(await verify(owner.id)).toMatchObject({ status: 'active' })
        await settled()
        expect((await api.as('admin').get(`/api/domains/${squatter.id}`)).body.data).toMatchObject({
          verification: { message: expect.stringContaining('belongs to another project') },
        })
        expect(await verify(squatter.id)).toMatchObject({
          status: 'pending',
          verification: {
            proven_by: null,
            message: expect.stringContaining('belongs to another project'),
          },
        })
      },
    )
    it('of a name below the other one of a www pair is a rival as well', async () => {
      const squatter = (await add('shop.example.com')).body.data
      const theirs = await otherProject()
      for (const name of ['example.com', 'shop.example.com']) api.fakes.dns.set(name, { A: addresses })
      const owner = await addProven('www.example.com', { www: 'to_apex' }, theirs.app_id)
      expect(owner).toMatchObject({
        status: 'pending',
        verification: {
          proven_by: null,
          message: expect.stringMatching(/another project of this installation asks for it/),
        },
      })
      api.fakes.dns.set('_portreeve.example.com', { TXT: [textOf(owner)] })
      expect((await verify(owner.id)).status).toBe('active')
      expect(await verify(squatter.id)).toMatchObject({
        status: 'pending',
        verification: { message: expect.stringContaining('belongs to another project') },
      })
    })
    it('of a www pair contests what is below its other name', async () => {
      await add('www.example.com', { www: 'to_apex' })
      const theirs = await otherProject()
      expect(await addProven('shop.example.com', {}, theirs.app_id)).toMatchObject({
        status: 'pending',
        verification: {
          proven_by: null,
          message: expect.stringMatching(/another project of this installation asks for it/),
        },
      })
    })
    it('that can never be proven any more contests nothing', async () => {
      await addProven('example.com')
      const theirs = await otherProject()
      // Claimed before, and lost: what lies below a proven name is its project's.
      api.kernel.db
        .sql(`INSERT INTO domains (id, app_id, project_id, hostname, kind, status, ssl_mode, token, created_at, updated_at)
        VALUES ('dom_lost', ?, ?, 'shop.example.com', 'custom', 'pending', 'off', 'x', ?, ?)`)
        .run(theirs.app_id, theirs.project_id, api.fakes.clock.iso(), api.fakes.clock.iso())
      expect((await addProven('shop.example.com')).status).toBe('active')
    })
    it('of the same project contests nothing', async () => {
      await add('example.com')
      expect((await addProven('shop.example.com')).status).toBe('active')
    })
    it('that failed contests nothing', async () => {
      await add('example.com')
      await settled()
      await threeDays()
      const theirs = await otherProject()
      expect((await addProven('example.com', {}, theirs.app_id)).status).toBe('active')
    })
    it("is not proven once the name has become the installation's", async () => {
      const claims = [
        (await add('panel.example.org')).body.data,
        (await add('*.example.org')).body.data,
        (await add('free.example.com', { www: 'to_www' })).body.data,
      ]
      for (const name of [
        'panel.example.org',
        '*.example.org',
        'a.example.org',
        'free.example.com',
        'www.free.example.com',
      ])
        api.fakes.dns.set(name, { A: addresses })
      expect(
        (
          await api.as('admin').put('/api/settings/domain', {
            dashboard_domain: 'panel.example.org',
            base_domain: 'free.example.com',
          })
        ).status,
      ).toBe(200)
      for (const { id } of claims)
        expect(await verify(id)).toMatchObject({
          status: 'pending',
          verification: { message: expect.stringMatching(/the name of the dashboard|base domain/) },
        })
    })
  })
  it('a claim that was never proven keeps nobody from the name once it is removed', async () => {
    const { body } = await add('example.com')
    await settled()
    await api.as('developer').delete(`/api/domains/${body.data.id}`)
    const theirs = await otherProject()
    expect((await addProven('example.com', {}, theirs.app_id)).status).toBe('active')
  })
  it('keeps a removed name that was proven while the edge was away', async () => {
    api.fakes.dns.set('example.com', { A: addresses })
    api.fakes.ingress.failNext('setRoute', 'the edge is away')
    const { body } = await add('example.com', { ssl_mode: 'off' })
    await settled()
    expect((await api.as('viewer').get(`/api/domains/${body.data.id}`)).body.data.status).toBe('verified')
    await api.as('developer').delete(`/api/domains/${body.data.id}`)
    const theirs = await otherProject()
    expect((await add('example.com', {}, theirs.app_id)).status).toBe(409)
  })
  it("the automatic name of a deleted app is nobody's once the installation has another base domain", async () => {
    const theirs = await otherProject()
    await api.as('admin').delete(`/api/apps/${app_id}`)
    await api.services.jobs.idle()
    await api.as('admin').put('/api/settings/domain', { base_domain: 'apps.example.org' })
    expect((await add('shop.apps.example.net', {}, theirs.app_id)).status).toBe(201)
  })
  it("a www pair is not proven once its other name has become the dashboard's", async () => {
    const claim = (await add('www.panel.example.org', { www: 'to_apex' })).body.data
    for (const name of ['panel.example.org', 'www.panel.example.org'])
      api.fakes.dns.set(name, { A: addresses })
    expect(
      (await api.as('admin').put('/api/settings/domain', { dashboard_domain: 'panel.example.org' })).status,
    ).toBe(200)
    expect(await verify(claim.id)).toMatchObject({
      status: 'pending',
      verification: {
        proven_by: null,
        message: expect.stringContaining('panel.example.org is the name of the dashboard'),
      },
    })
  })
  it('of two that prove a name at once one has it', async () => {
    const theirs = await otherProject()
    const claims = [
      (await add('example.com')).body.data,
      (await add('example.com', {}, theirs.app_id)).body.data,
    ]
    api.fakes.dns.set('_portreeve.example.com', { TXT: claims.map(textOf) })
    const statuses = (await Promise.all(claims.map(({ id }) => verify(id)))).map(({ status }) => status)
    expect(statuses.sort()).toEqual(['active', 'pending'])
    expect(
      [...api.fakes.ingress.routes.values()].filter(({ hostnames }) => hostnames[0] === 'example.com'),
    ).toHaveLength(1)
  })
  it('keeps a removed name for its former project for seven days, names above and below it included', async () => {
    const domain = await addProven('example.com')
    const theirs = await otherProject()
    expect((await api.as('developer').delete(`/api/domains/${domain.id}`)).status).toBe(200)
    for (const name of ['example.com', 'shop.example.com', '*.example.com'])
      expect((await add(name, {}, theirs.app_id)).status).toBe(409)
    api.fakes.clock.advance(7 * DAY_MS - 1000)
    expect((await add('example.com', {}, theirs.app_id)).status).toBe(409)
    api.fakes.clock.advance(2000)
    expect((await add('example.com', {}, theirs.app_id)).status).toBe(201)
  })
  it.each(['to_apex', 'to_www'])(
    'keeps both names of a removed www pair (%s), and what is below the shorter one',
    async (www) => {
      for (const name of ['example.com', 'www.example.com']) api.fakes.dns.set(name, { A: addresses })
      const domain = await addProven('www.example.com', { www })
      const theirs = await otherProject()
      expect((await api.as('developer').delete(`/api/domains/${domain.id}`)).status).toBe(200)
      for (const name of ['example.com', 'www.example.com', 'shop.example.com'])
        expect([name, (await add(name, {}, theirs.app_id)).status]).toEqual([name, 409])
    },
  )
  it('lets the former project take its name again at once', async () => {
    const domain = await addProven('example.com')
    await api.as('developer').delete(`/api/domains/${domain.id}`)
    expect((await add('example.com')).status).toBe(201)
  })
  it('keeps the names of a deleted app as well', async () => {
    await addProven('example.com')
    const theirs = await otherProject()
    await api.as('admin').delete(`/api/apps/${app_id}`)
    await api.services.jobs.idle()
    expect((await add('example.com', {}, theirs.app_id)).status).toBe(409)
    expect([...api.fakes.ingress.routes.values()].filter((route) => route.app_id === app_id)).toEqual([])
  })
  it('a claim that was never proven is free again once it has failed', async () => {
    const { body } = await add('example.com')
    await settled()
    await threeDays()
    expect((await api.as('admin').get(`/api/domains/${body.data.id}`)).body.data.status).toBe('failed')
    const theirs = await otherProject()
    const taken = await addProven('example.com', {}, theirs.app_id)
    expect(taken.status).toBe('active')
    const { body: again } = await api.as('admin').post('/api/domains/verify', { domain_id: body.data.id })
    expect(again.data).toMatchObject({
      status: 'failed',
      verification: { message: expect.stringContaining('belongs to another project') },
    })
  })
  it('does not go to another project with its app when what lies around it stays', async () => {
    await addProven('example.com')
    await addProven('shop.example.com', {}, await createApp('blog'))
    const theirs = await otherProject()
    const { status, body } = await api
      .as('admin')
      .post(`/api/apps/${app_id}/move`, { project_id: theirs.project_id })
    expect([status, body.error.message]).toEqual([409, expect.stringContaining('belongs to another project')])
    expect((await api.as('viewer').get(`/api/apps/${app_id}`)).status).toBe(200)
  })
  it('does not go where the same claim is already, and the app stays', async () => {
    await add('example.com')
    const theirs = await otherProject()
    await add('example.com', {}, theirs.app_id)
    expect(
      (await api.as('admin').post(`/api/apps/${app_id}/move`, { project_id: theirs.project_id })).status,
    ).toBe(409)
  })
  it('goes to the new project with its app', async () => {
    const domain = await addProven('example.com')
    const theirs = await otherProject()
    await api.as('admin').post(`/api/apps/${app_id}/move`, { project_id: theirs.project_id })
    expect((await api.as('admin').get(`/api/domains/${domain.id}`)).body.data.project_id).toBe(
      theirs.project_id,
    )
    expect((await api.as('developer').get(`/api/domains/${domain.id}`)).status).toBe(404)
  })
})
