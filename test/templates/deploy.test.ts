import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

let api: TestApi
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
})
afterAll(() => api.close())

const variablesOf = async (id: string) => {
  const { body } = await api.as('owner').get(`/api/apps/${id}/env?per_page=100`)
  return new Map<string, any>(body.data.map((one: { key: string }) => [one.key, one]))
}

it('a template becomes an app whose passwords are generated, secret, and different each time', async () => {
  const made = await api.as('developer').post('/api/templates/ghost/deploy', { name: 'blog' })
  expect(made.status).toBe(201)
  expect(made.body.data).toMatchObject({ name: 'blog', source: 'template', status: 'building' })
  const variables = await variablesOf(made.body.data.id)
  expect(variables.get('DB_PASSWORD')).toMatchObject({ secret: true, value: '********' })
  expect(variables.get('PUBLIC_URL').value).toBe(made.body.data.url)
  const again = await api.as('developer').post('/api/templates/ghost/deploy', { name: 'blog2' })
  const reveal = async (id: string) =>
    (await api.as('owner').get(`/api/apps/${id}/env/DB_PASSWORD/reveal`)).body.data.value
  expect(await reveal(again.body.data.id)).not.toBe(await reveal(made.body.data.id))
})

it('a deployment of the app is queued at once', async () => {
  const { body } = await api.as('developer').post('/api/templates/gotify/deploy', {})
  expect(body.data.name).toBe('gotify')
  const deployments = await api.as('viewer').get(`/api/apps/${body.data.id}/deployments`)
  expect(deployments.body.data).toEqual([expect.objectContaining({ status: 'queued' })])
})

it('each public service knows its own address', async () => {
  const { body } = await api.as('developer').post('/api/templates/swetrix/deploy', { name: 'stats' })
  const variables = await variablesOf(body.data.id)
  expect(variables.get('API_URL').value).toMatch(/^https?:\/\/api-stats\./)
})

it('a value that is missing or unknown is told by its name, and nothing is made', async () => {
  const refused = await api.as('developer').post('/api/templates/pgadmin/deploy', {
    name: 'half',
    variables: { ADMIN_EMIAL: 'me@example.com' },
  })
  expect(refused.status).toBe(422)
  expect(refused.body.error.details.map(({ path }: { path: string }) => path)).toEqual([
    'variables.ADMIN_EMIAL',
    'variables.ADMIN_EMAIL',
  ])
  const apps = await api.as('viewer').get('/api/apps?per_page=100')
  expect(apps.body.data.map(({ name }: { name: string }) => name)).not.toContain('half')
})

it('a name that is taken is 409, an unknown template 404, and a viewer may not deploy', async () => {
  await api.as('developer').post('/api/templates/memos/deploy', { name: 'notes' })
  expect((await api.as('developer').post('/api/templates/memos/deploy', { name: 'notes' })).status).toBe(409)
  expect((await api.as('developer').post('/api/templates/nothing/deploy', {})).status).toBe(404)
  expect((await api.as('viewer').post('/api/templates/memos/deploy', {})).status).toBe(403)
})

it('every template can be deployed with what it says it needs', async () => {
  const list = [
    ...(await api.as('viewer').get('/api/templates?per_page=100')).body.data,
    ...(await api.as('viewer').get('/api/templates?per_page=100&page=2')).body.data,
    ...(await api.as('viewer').get('/api/templates?per_page=100&page=3')).body.data,
  ]
  const refused: unknown[] = []
  for (const { slug } of list) {
    const { body } = await api.as('viewer').get(`/api/templates/${slug}`)
    const needed = body.data.variables.filter((one: { required: boolean }) => one.required)
    const made = await api.as('admin').post(`/api/templates/${slug}/deploy`, {
      name: `t-${slug}`.slice(0, 40).replace(/-$/, ''),
      variables: Object.fromEntries(needed.map(({ key }: { key: string }) => [key, 'someone@example.com'])),
    })
    if (made.status !== 201) refused.push([slug, made.status, made.body.error?.message])
  }
  expect(refused).toEqual([])
})

it('the compose file of such an app is changed like any other', async () => {
  const { body } = await api.as('developer').post('/api/templates/memos/deploy', { name: 'own-notes' })
  const change = (fields: object) => api.as('developer').put(`/api/apps/${body.data.id}`, fields)
  const compose = 'services:\n  memos:\n    image: nginx:1.27\n    ports: ["80"]\n'
  expect((await change({ compose })).body.data).toMatchObject({ source: 'template', compose })
  expect((await change({ git_url: 'https://git.example.com/a/b.git' })).status).toBe(422)
})
