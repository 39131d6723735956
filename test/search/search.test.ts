import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { roundsDuring, toil } from '#test/support/rounds'

let api: TestApi
let redirect_id: string
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
  const url = 'https://git.example.com/team/shop.git'
  api.fakes.git.commit(url, 'main', { 'index.html': '<p>hello' })
  const developer = api.as('developer')
  for (const name of ['my-shop', 'shop', 'shop-with-a-long-name', 'eshop', 'unrelated'])
    await developer.post('/api/apps', { name, git_url: url })
  const { body } = await developer.get('/api/apps?q=unrelated')
  const domain = await developer.post('/api/domains', {
    app_id: body.data[0].id,
    hostname: 'www.example.com',
  })
  redirect_id = (
    await developer.post('/api/redirects', {
      domain_id: domain.body.data.id,
      from: '/old-Shop',
      to: '/new',
    })
  ).body.data.id
  await api.as('owner').post('/api/projects', { name: 'Shop' })
})
afterAll(() => api.close())
const names = async (query: string, caller: Parameters<TestApi['as']>[0] = 'owner') => {
  const { body } = await api.as(caller).get(`/api/search?${query}`)
  return body.data
    .filter(({ kind }: { kind: string }) => kind !== 'domain')
    .map(({ kind, name }: { kind: string; name: string }) => `${kind} ${name}`)
}

describe('search', () => {
  it('looks at one kind after the other, with others served in between', async () => {
    const { db } = api.kernel
    const { sql } = db
    let kinds = 0
    db.sql = (text) => {
      if (text.includes('AS rank')) {
        kinds += 1
        toil()
      }
      return sql(text)
    }
    const page = { page: 1, per_page: 20 }
    const rounds = await roundsDuring(() => api.services.search.find(api.actor('owner'), 'shop', page))
    db.sql = sql
    expect(rounds).toBeGreaterThan(kinds - 2)
  })
  it('finds the very name first, then names that begin with the text, then others, whatever the case', async () => {
    expect(await names('q=SHOP')).toEqual([
      'project Shop',
      'app shop',
      'app shop-with-a-long-name',
      'app eshop',
      'app my-shop',
      'redirect /old-Shop',
      'template EverShop',
    ])
  })
  it('finds redirects by their source', async () => {
    expect((await api.as('viewer').get('/api/search?q=old-shop')).body).toMatchObject({
      data: [{ kind: 'redirect', id: redirect_id, name: '/old-Shop' }],
      total: 1,
      page: 1,
      per_page: 20,
      pages: 1,
    })
  })
  it('answers in pages like every list, one after the other without a gap or a repetition', async () => {
    const whole = (await api.as('owner').get('/api/search?q=shop&per_page=100')).body
    const pieces: unknown[] = []
    for (let page = 1; page <= Math.ceil(whole.total / 2); page += 1) {
      const { body } = await api.as('owner').get(`/api/search?q=shop&per_page=2&page=${page}`)
      expect(body).toMatchObject({
        total: whole.total,
        page,
        per_page: 2,
        pages: Math.ceil(whole.total / 2),
      })
      pieces.push(...body.data)
    }
    expect(pieces).toEqual(whole.data)
    expect(whole.total).toBe(whole.data.length)
    expect((await api.as('owner').get('/api/search?q=shop&page=999999999')).body).toMatchObject({
      data: [],
      total: whole.total,
    })
  })
  it('shows the best 500 and counts all: whoever asks for a page far behind has nothing gathered and sorted', async () => {
    const { db } = api.kernel
    const { id } = (await api.as('admin').post('/api/projects', { name: 'crowded' })).body.data
    db.tx(() => {
      for (let n = 0; n < 600; n += 1)
        db.sql(
          `INSERT INTO volumes (id, project_id, name, status, access, created_at, updated_at)
           VALUES (?, ?, ?, 'ready', 'shared', '', '')`,
        ).run(`vol_crowd${n}`, id, `crowd-${n}`)
    })
    const page = async (number: number, per_page: number) => {
      const { body } = await api.as('admin').get(`/api/search?q=crowd-&page=${number}&per_page=${per_page}`)
      return [body.data.length, body.total]
    }
    expect([await page(5, 100), await page(6, 100), await page(7, 80), await page(99_999_999, 100)]).toEqual([
      [100, 600],
      [0, 600],
      [20, 600],
      [0, 600],
    ])
  })
  it('counts nothing that the caller may not see; templates are there for everybody', async () => {
    expect((await api.as('outsider').get('/api/search?q=shop')).body).toMatchObject({
      data: [{ kind: 'template', name: 'EverShop' }],
      total: 1,
    })
    expect((await api.as('outsider').get('/api/search?q=my-shop')).body).toMatchObject({ data: [], total: 0 })
  })
})
