import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

let api: TestApi
beforeAll(async () => {
  api = await createTestApi()
})
afterAll(() => api.close())

it('a viewer browses templates by name, page by page', async () => {
  const first = await api.as('viewer').get('/api/templates?per_page=100')
  expect(first.status).toBe(200)
  expect(first.body.total).toBeGreaterThanOrEqual(200)
  expect(first.body.data).toHaveLength(100)
  const second = await api.as('viewer').get('/api/templates?per_page=100&page=2')
  const slugs = [...first.body.data, ...second.body.data].map(({ slug }) => slug)
  expect(slugs).toEqual([...new Set(slugs)].sort())
})

it('a text finds templates by name, description and category, whatever its case', async () => {
  const found = await api.as('viewer').get('/api/templates?q=GHOST')
  expect(found.body.data.map(({ slug }: { slug: string }) => slug)).toContain('ghost')
  expect((await api.as('viewer').get('/api/templates?q=no-such-thing')).body).toMatchObject({
    data: [],
    total: 0,
  })
})

it('categories say how many templates they have, and a category lists just these', async () => {
  const categories = (await api.as('viewer').get('/api/templates/categories?per_page=100')).body.data
  const monitoring = categories.find(({ category }: { category: string }) => category === 'monitoring')
  const listed = await api.as('viewer').get('/api/templates?category=monitoring&per_page=100')
  expect(listed.body.total).toBe(monitoring.count)
  expect(new Set(listed.body.data.map(({ category }: { category: string }) => category))).toEqual(
    new Set(['monitoring']),
  )
})

it('one template tells its services, its variables and what a backup copies', async () => {
  const { body } = await api.as('viewer').get('/api/templates/ghost')
  expect(body.data).toMatchObject({
    slug: 'ghost',
    name: 'Ghost',
    backup: [
      { volume: 'content', pause: true },
      { service: 'db', dump: { engine: 'mysql' } },
    ],
  })
  expect(body.data.services.map(({ name }: { name: string }) => name)).toEqual(['db', 'ghost'])
  expect(body.data.services[1]).toMatchObject({ public_port: 2368, volumes: ['content'] })
  expect(body.data.variables).toContainEqual(
    expect.objectContaining({ key: 'DB_PASSWORD', secret: true, required: false }),
  )
})

it('the compose file of a template has no values', async () => {
  const { body } = await api.as('viewer').get('/api/templates/ghost/compose')
  expect(body.data.compose).toContain('database__connection__password: ${DB_PASSWORD}')
})

it.each(['/api/templates/nothing', '/api/templates/constructor', '/api/templates/..%2Fghost/compose'])(
  '%s is not found',
  async (path) => {
    expect((await api.as('viewer').get(path)).status).toBe(404)
  },
)

it('the search finds templates by name', async () => {
  const { body } = await api.as('viewer').get('/api/search?q=vaultwarden')
  expect(body.data).toEqual([
    expect.objectContaining({ kind: 'template', id: 'vaultwarden', project_id: null }),
  ])
})
