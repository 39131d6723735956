import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { poll } from '#test/support/poll'
import { commitShop, SHOP_URL } from '#test/support/shop'

const SLOW_URL = 'https://slow.example.org/eve/app.git'
let api: TestApi
let app: { id: string; project_id: string }
let token_id: string
let release: () => void

beforeEach(async () => {
  api = await createTestApi()
  commitShop(api, 'first')
  api.fakes.git.commit(SLOW_URL, 'main', { 'index.html': 'x' })
  const developer = api.as('developer')
  const body = { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 }
  app = (await developer.post('/api/apps', body)).body.data
  await api.services.jobs.idle()
  const token = { name: 'slow', host: 'slow.example.org', token: 'abc' }
  token_id = (await developer.post('/api/git-credentials', token)).body.data.id
  release = api.fakes.git.hold(SLOW_URL)
})
afterEach(async () => {
  release()
  await api.close()
})

const me = () => api.actor('developer').user_id
/** A request that waits for a host until `release`. */
async function late(begin: () => Promise<any>): Promise<{ answer: Promise<any> }> {
  const before = api.fakes.git.calls.length
  const answer = begin()
  await poll(() => api.fakes.git.calls.length > before)
  return { answer }
}
const change = () =>
  late(() =>
    api.as('developer').put(`/api/apps/${app.id}`, { git_url: SLOW_URL, git_credential_id: token_id }),
  )
const remove = async () =>
  expect((await api.as('owner').delete(`/api/projects/${app.project_id}/members/${me()}`)).status).toBe(200)
const address = async () => (await api.as('admin').get(`/api/apps/${app.id}`)).body.data.git_url

describe('a right that ends while a request waits for somebody', () => {
  it('changes nothing after its caller was removed from the project', async () => {
    const { answer } = await change()
    await remove()
    release()
    expect([(await answer).status, await address()]).toEqual([404, SHOP_URL])
  })
  it('changes nothing in the project that the app was moved to', async () => {
    const { answer } = await change()
    const project = await api.as('admin').post('/api/projects', { name: 'elsewhere' })
    const project_id = project.body.data.id
    expect((await api.as('admin').post(`/api/apps/${app.id}/move`, { project_id })).status).toBe(200)
    release()
    expect([(await answer).status, await address()]).toEqual([404, SHOP_URL])
  })
  it('makes no app, and leaves nothing of one', async () => {
    const { answer } = await late(() =>
      api
        .as('developer')
        .post('/api/apps', { name: 'second', git_url: SLOW_URL, git_credential_id: token_id }),
    )
    await remove()
    release()
    expect((await answer).status).toBeGreaterThanOrEqual(403)
    const names = (await api.as('admin').get('/api/apps')).body.data.map(({ name }: any) => name)
    expect(names).toEqual(['shop'])
  })
  it('does what it was asked for as long as the right is there', async () => {
    const { answer } = await change()
    release()
    expect([(await answer).status, await address()]).toEqual([200, SLOW_URL])
  })
})
