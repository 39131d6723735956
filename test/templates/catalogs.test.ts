import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

/** What the address of the catalogue answers with. */
let served = ''
let server: Server
let url: string
beforeAll(async () => {
  server = createServer((_, response) => response.end(served))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/templates.json`
})
afterAll(() => server.close())
let api: TestApi
beforeEach(async () => {
  api = await createTestApi({ environment: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: '127.0.0.1' } })
})
afterEach(() => api.close())

const COMPOSE = `services:
  web:
    image: acme/ledger:\${VERSION}
    x-portreeve: { public: 8080, health_path: / }
`
const entry = (changes: { slug?: string; compose?: string; template?: object } = {}) => ({
  slug: 'ledger',
  compose: COMPOSE.replace('${VERSION}', '4.2'),
  ...changes,
  template: {
    name: 'Ledger',
    description: 'Keeps the books of a small company.',
    category: 'finance',
    links: { website: 'https://ledger.example', source: 'https://ledger.example/source' },
    minimum_memory_bytes: 67_108_864,
    upgrade: 'Read its notes.',
    ...changes.template,
  },
})
const add = (body: object) => api.as('admin').post('/api/template-catalogs', body)
const found = async (slug = 'ledger') => (await api.as('viewer').get(`/api/templates/${slug}`)).body.data

it('an uploaded catalogue is browsed, searched and deployed like the templates of the release, and taken away', async () => {
  const before = (await api.as('viewer').get('/api/templates')).body.total
  const added = await add({ name: 'Ours', templates: [entry()] })
  expect([added.status, added.body.data]).toMatchObject([
    201,
    { name: 'Ours', url: null, templates: 1, digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) },
  ])
  expect(await found()).toMatchObject({ slug: 'ledger', catalog: 'Ours', services: [{ public_port: 8080 }] })
  expect((await found('ghost')).catalog).toBeNull()
  expect((await api.as('viewer').get('/api/templates')).body.total).toBe(before + 1)
  const { body } = await api.as('viewer').get('/api/search?q=Ledger')
  expect(body.data.map(({ id }: { id: string }) => id)).toContain('ledger')
  const deployed = await api.as('developer').post('/api/templates/ledger/deploy', { name: 'books' })
  expect([deployed.status, deployed.body.data.source]).toEqual([201, 'template'])

  const { id } = added.body.data
  expect((await api.as('admin').get('/api/template-catalogs')).body).toMatchObject({
    data: [{ id }],
    total: 1,
  })
  expect((await api.as('admin').delete(`/api/template-catalogs/${id}`)).status).toBe(200)
  expect((await api.as('viewer').get('/api/templates/ledger')).status).toBe(404)
  expect((await api.as('viewer').get('/api/templates')).body.total).toBe(before)
  const lines = (await api.as('admin').get('/api/audit-logs')).body.data
  expect(lines.map(({ action }: { action: string }) => action)).toEqual(
    expect.arrayContaining(['template_catalog.create', 'template_catalog.delete']),
  )
})

it('an address is pinned to what it sent first: other content is refused until its digest is named', async () => {
  served = JSON.stringify([entry()])
  const added = await add({ name: 'Theirs', url })
  expect([added.status, added.body.data]).toMatchObject([201, { url, templates: 1 }])
  const { id, digest } = added.body.data
  const refresh = (body = {}) => api.as('admin').post(`/api/template-catalogs/${id}/refresh`, body)
  expect((await refresh()).body.data).toMatchObject({ digest })

  served = JSON.stringify([entry({ template: { description: 'Another text.' } }), entry({ slug: 'more' })])
  const refused = await refresh()
  expect([refused.status, refused.body.error.code]).toEqual([409, 'CONFLICT'])
  expect((await found()).description).toBe('Keeps the books of a small company.')
  const [now] = /sha256:[0-9a-f]{64}/.exec(refused.body.error.message)!
  expect(now).not.toBe(digest)
  expect((await refresh({ digest: now })).body.data).toMatchObject({ digest: now, templates: 2 })
  expect((await found()).description).toBe('Another text.')
  expect((await found('more')).catalog).toBe('Theirs')
})

it('a digest that is named must fit', async () => {
  served = JSON.stringify([entry()])
  const answer = await add({ name: 'Theirs', url, digest: `sha256:${'0'.repeat(64)}` })
  expect([answer.status, answer.body.error.details[0].path]).toEqual([422, 'digest'])
  expect((await api.as('admin').get('/api/template-catalogs')).body.total).toBe(0)
})

it.each([
  [
    'a host’s paths',
    entry({ compose: `${COMPOSE.replace('${VERSION}', '1')}    volumes: ["/:/host"]\n` }),
    'compose.services.web.volumes.0',
  ],
  [
    'an unknown key',
    entry({ compose: `${COMPOSE.replace('${VERSION}', '1')}    pidd: 1\n` }),
    'compose.services.web.pidd',
  ],
  ['no version', entry({ compose: COMPOSE.replace(':${VERSION}', ':latest') }), 'compose.services.web.image'],
  ['a category that is none', entry({ template: { category: 'Finance & More' } }), 'template.category'],
  ['a slug of the release', entry({ slug: 'ghost' }), 'slug'],
  ['a slug that is a path', entry({ slug: 'categories' }), 'slug'],
  ['a slug of another folder', entry({ slug: '../ghost' }), 'slug'],
])('a template with %s is refused by its path, and the others with it', async (_, bad, path) => {
  const answer = await add({
    name: 'Ours',
    templates: [entry(), bad.slug === 'ledger' ? { ...bad, slug: 'b' } : bad],
  })
  expect([answer.status, answer.body.error.code]).toEqual([422, 'VALIDATION_ERROR'])
  expect(answer.body.error.details.map((one: { path: string }) => one.path)).toContain(`templates.1.${path}`)
  expect((await api.as('viewer').get('/api/templates/ledger')).status).toBe(404)
})

it('a name is taken once, and a catalogue has an address or templates', async () => {
  expect((await add({ name: 'Ours', templates: [entry()] })).status).toBe(201)
  expect((await add({ name: 'Ours', templates: [entry({ slug: 'other' })] })).status).toBe(409)
  expect((await add({ name: 'More', templates: [entry()] })).status).toBe(422)
  expect((await add({ name: 'More' })).status).toBe(422)
  expect((await add({ name: 'More', url, templates: [entry()] })).status).toBe(422)
})

it.each([
  ['http://169.254.169.254/latest', 'an address of the metadata service'],
  ['http://10.0.0.1/templates.json', 'a private address'],
  ['file:///etc/passwd', 'a file of the server'],
])('%s is refused', async (address) => {
  const answer = await add({ name: 'Ours', url: address })
  expect([answer.status, answer.body.error.details[0].path]).toEqual([422, 'url'])
})

it.each([
  ['no JSON', '<html>', 'url'],
  ['no list', '{}', 'templates'],
  ['more templates than are taken, none of them one', `[${'{},'.repeat(20_000)}{}]`, 'url'],
  ['more than 2 MiB', JSON.stringify('x'.repeat(2_100_000)), 'url'],
])('an address that sends %s is refused', async (_, text, path) => {
  served = text
  const answer = await add({ name: 'Ours', url })
  expect([answer.status, answer.body.error.details[0].path]).toEqual([422, path])
})

it('only administrators see and change catalogues', async () => {
  for (const role of ['viewer', 'developer'] as const) {
    expect((await api.as(role).get('/api/template-catalogs')).status).toBe(403)
    expect((await api.as(role).post('/api/template-catalogs', { name: 'X', url })).status).toBe(403)
  }
})
