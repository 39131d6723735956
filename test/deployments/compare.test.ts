import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

const SECRET = 'a-secret-of-the-shop'
let api: TestApi
let app_id: string
const developer = () => api.as('developer')
beforeEach(async () => {
  api = await createTestApi()
  commitShop(api, 'v1')
  app_id = await create('shop')
})
afterEach(() => api.close())

async function create(name: string): Promise<string> {
  const body = { name, git_url: SHOP_URL, soak_seconds: 0 }
  const { id } = (await developer().post('/api/apps', body)).body.data
  await api.services.jobs.idle()
  return id
}
async function request(what: string, body: object = {}): Promise<string> {
  const answer = await developer().post(`/api/apps/${app_id}/${what}`, body)
  await api.services.jobs.idle()
  return answer.body.data.id
}
const deployment = async (id: string) => (await api.as('viewer').get(`/api/deployments/${id}`)).body.data
const first = async (id = app_id) =>
  (await developer().get(`/api/apps/${id}/deployments`)).body.data.at(-1).id
const compare = (id: string, other?: string) =>
  api.as('viewer').get(`/api/deployments/${id}/compare${other ? `?with=${other}` : ''}`)
const set = (key: string, value: string, more = {}) =>
  developer().post(`/api/apps/${app_id}/env`, { key, value, ...more })

describe('two deployments of an app', () => {
  it('are compared in all that makes them what they are, and no secret is told', async () => {
    const one = await first()
    await set('MODE', 'live')
    await set('SHOP_TOKEN', SECRET)
    await developer().put(`/api/apps/${app_id}`, { build: { start_command: 'node other.js' }, port: 4000 })
    // What could be set is no part of what a release is.
    const files = { 'package.json': '{"scripts":{"start":"node server.js"}}', '.env.example': 'A=1' }
    api.fakes.git.commit(SHOP_URL, 'main', files, 'v2')
    const two = await request('deploy')
    expect((await deployment(two)).plan.suggested_variables).toHaveLength(1)
    const { status, body, text } = await compare(two, one)
    expect([status, body.data.with_id, body.data.complete]).toEqual([200, one, true])
    const told = Object.fromEntries(
      body.data.differences.map(({ part, key, before, after }: Record<string, string>) => [
        `${part} ${key}`,
        [before, after],
      ]),
    )
    expect(told).toMatchObject({
      'source commit_message': ['v1', 'v2'],
      'plan start_command': ['node server.js', 'node other.js'],
      'configuration build.start_command': [null, 'node other.js'],
      'configuration port': [null, '4000'],
      'variables MODE': [null, 'live'],
      'variables SHOP_TOKEN': [null, '********'],
    })
    expect(told).toHaveProperty(['image image'])
    expect(told).not.toHaveProperty(['plan suggested_variables'])
    expect(text).not.toContain(SECRET)
    expect((await compare(one, one)).body.data.differences).toEqual([])
  })
  it('do not tell a value that became a secret only after both', async () => {
    await set('GREETING', 'hello')
    const one = await request('deploy')
    await developer().put(`/api/apps/${app_id}/env/GREETING`, { value: SECRET })
    const two = await request('deploy')
    expect((await compare(two, one)).text).toContain(SECRET)
    await developer().put(`/api/apps/${app_id}/env/GREETING`, { secret: true })
    expect((await compare(two, one)).text).not.toContain(SECRET)
  })
  it('are the last good one and this one when nobody says which: of a build of its own', async () => {
    const one = await first()
    const two = await request('deploy')
    const restarted = await request('restart')
    api.fakes.engine.behave(() => true, { build: 'fail' })
    commitShop(api, 'v2')
    const failed = await request('deploy')
    expect((await deployment(one)).last_good_id).toBeNull()
    expect((await deployment(two)).last_good_id).toBe(one)
    for (const id of [restarted, failed]) expect((await deployment(id)).last_good_id).toBe(two)
    const { data } = (await compare(failed)).body
    expect(data).toMatchObject({ with_id: two, complete: false })
    expect(data.differences).toContainEqual(
      expect.objectContaining({ key: 'commit_message', before: 'v1', after: 'v2' }),
    )
    const alone = await compare(one)
    expect([alone.status, alone.body.error.message]).toEqual([404, expect.stringContaining('before it')])
  })
  it('belong to the same app, which the reader may see', async () => {
    const [one, other] = [await first(), await first(await create('other'))]
    expect((await compare(one, other)).status).toBe(404)
    expect((await compare(one, 'dep_00000000000000000000')).status).toBe(404)
    expect((await api.as('outsider').get(`/api/deployments/${one}/compare?with=${one}`)).status).toBe(404)
  })
})
