import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSecrets } from '#server/kernel/secrets'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
let app_id: string
let project_id: string
let env: string
beforeEach(async () => {
  api = await createTestApi({ jobs: false })
  commitShop(api, 'one')
  project_id = api.services.http.default_project()
  const made = await developer().post('/api/apps', { name: 'shop', git_url: SHOP_URL })
  app_id = made.body.data.id
  env = `/api/apps/${app_id}/env`
})
afterEach(() => api.close())
const developer = () => api.as('developer')
const change = (body: object) => developer().put(`${env}/TOKEN`, body)
const take = (body: object) => developer().post(`${env}/import`, { mode: 'merge', ...body })
const NEW = { value: 'new' }
const TOKEN = { key: 'TOKEN', value: 'hidden', secret: true }
const add = (body: object) => developer().post(env, { ...TOKEN, ...body })
const refused = (path: string) => [422, [{ path }]]
const answer = ({ status, body }: { status: number; body: any }) => [status, body.error?.details]
const rowOf = (key: string) => api.kernel.db.sql('SELECT * FROM variables WHERE key = ?').get(key)
/** As after a start with another key file: the rows are there, and nobody can read them. */
const loseTheKey = () => {
  const { seal } = createSecrets(Buffer.alloc(32, 8))
  const rows = api.kernel.db.sql('SELECT id, preview_value FROM variables').all() as {
    id: string
    preview_value: string | null
  }[]
  for (const { id, preview_value } of rows)
    api.kernel.db
      .sql('UPDATE variables SET value = ?, preview_value = ? WHERE id = ?')
      .run(seal('lost', id), preview_value && seal('lost', id), id)
}

describe('a variable that cannot be read any more', () => {
  it.each(['masked=true', 'reveal=true', ''])(
    'stays as it is when an export (%s) is sent back, whatever stands in its place there',
    async (query) => {
      await add({ preview_value: 'other' })
      await add({ key: 'MODE', value: 'live', secret: false })
      loseTheKey()
      const before = [rowOf('TOKEN'), rowOf('MODE')]
      const { text } = await developer().get(`${env}/export?${query}`)
      const sent = await take({ text, mode: 'replace' })
      expect([sent.status, sent.body.data?.changed, sent.body.data?.removed]).toEqual([200, [], []])
      expect([rowOf('TOKEN'), rowOf('MODE')]).toEqual(before)
    },
  )
  it('is described anew beside its mask, and stays a secret', async () => {
    await add({})
    loseTheKey()
    const { value } = rowOf('TOKEN') as { value: string }
    const send = (details: object) => take({ text: 'TOKEN=********', details: { TOKEN: details } })
    const described = await send({ comment: 'of the shop', scopes: ['runtime'] })
    expect(described.body.data.changed).toEqual(['TOKEN'])
    expect(rowOf('TOKEN')).toMatchObject({ value, comment: 'of the shop', build: 0, version: 2 })
    expect(answer(await send({ secret: false }))).toMatchObject(refused('text: TOKEN'))
    expect(rowOf('TOKEN')).toMatchObject({ value, secret: 1 })
  })
  it('is not made of its mask by a change, nor loses its value for previews unsaid', async () => {
    await add({ preview_value: 'other' })
    loseTheKey()
    const before = rowOf('TOKEN')
    const masked = await change({ value: '********', preview_value: null })
    expect(answer(masked)).toMatchObject(refused('value'))
    for (const preview of [{}, { preview_value: '********' }])
      expect(answer(await change({ ...NEW, ...preview }))).toMatchObject(refused('preview_value'))
    expect(answer(await take({ text: 'TOKEN=new' }))).toMatchObject(refused('text: TOKEN'))
    expect(rowOf('TOKEN')).toEqual(before)
    const set = await change({ ...NEW, preview_value: null })
    expect([set.status, rowOf('TOKEN')]).toMatchObject([200, { preview_value: null }])
  })
  it('stays shared by a project whose other variables change', async () => {
    const shared = `/api/projects/${project_id}/env`
    const share = (variables: object[]) => developer().put(shared, { variables })
    await share([{ key: 'TOKEN', value: 'hidden', secret: true }])
    await add({ key: 'USES', value: '${{ project.TOKEN }}' })
    loseTheKey()
    const before = rowOf('TOKEN')
    for (const value of [{ value: '********' }, {}]) {
      const sent = await share([
        { key: 'TOKEN', ...value },
        { key: 'MODE', value: 'live' },
      ])
      expect(sent.status).toBe(200)
      expect(rowOf('TOKEN')).toEqual(before)
    }
    expect((await share([{ key: 'TOKEN', value: '********', secret: false }])).status).toBe(422)
    expect(rowOf('TOKEN')).toEqual(before)
  })
})

/** As after a start with another key file, for one column of one table. */
const loseIn = (table: string, column: string) => {
  const sealed = createSecrets(Buffer.alloc(32, 8)).seal('lost', 'lost')
  const lost = api.kernel.db.sql(`UPDATE ${table} SET ${column} = ? WHERE ${column} LIKE 'v1.%'`)
  expect(lost.run(sealed).changes).toBeGreaterThan(0)
}

describe('a secret of something else that cannot be read any more', () => {
  it('of a linked database fails the next deployment, and neither its start nor its log', async () => {
    const database = { name: 'orders', engine: 'postgres' }
    const { id } = (await developer().post('/api/databases', database)).body.data
    await developer().post(`/api/databases/${id}/links`, { app_id })
    await add({ key: 'URL', value: '${{ orders.DATABASE_URL }}' })
    loseIn('databases', 'password')
    const lists = [`/api/apps/${app_id}/logs`, `/api/apps/${app_id}/deployments`]
    for (const path of lists) expect([path, (await developer().get(path)).status]).toEqual([path, 200])
    const deployment = (await developer().post(`/api/apps/${app_id}/deploy`, {})).body.data
    expect((await developer().get(`/api/apps/${app_id}/logs`)).status).toBe(200)
    api.services.jobs.start()
    await api.services.jobs.idle()
    const { status, error } = (await developer().get(`/api/deployments/${deployment.id}`)).body.data
    expect([status, error]).toMatchObject(['failed', { code: 'secret_unreadable' }])
    const told = { code: 'CONFLICT', message: expect.stringContaining('Restore the key file') }
    const shown = await developer().get(`/api/databases/${id}`)
    expect([shown.status, shown.body.error]).toMatchObject([409, told])
  })
  it('of previews is told, and others take its place', async () => {
    const settings = `/api/apps/${app_id}/previews/settings`
    expect((await developer().put(settings, { env: { A_TOKEN: 'hidden' } })).status).toBe(200)
    loseIn('preview_settings', 'env')
    expect((await developer().get(settings)).status).toBe(409)
    expect((await developer().put(settings, { env: { A_TOKEN: '********' } })).status).toBe(409)
    expect((await developer().put(settings, { limit: 3 })).status).toBe(409)
    const set = await developer().put(settings, { env: { A_TOKEN: 'new' } })
    expect([set.status, set.body.data?.env]).toEqual([200, { A_TOKEN: '********' }])
    expect((await developer().get(settings)).status).toBe(200)
  })
})
