import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

const URL = 'https://git.example.com/team/stack.git'
let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(() => api.close())

/** What became of an app whose compose file names an image that is on this server and in no registry. */
async function deployed(reference: string, owner?: string) {
  api.fakes.engine.addImage(reference, owner ? { labels: { project: owner } } : {})
  api.fakes.engine.behave(reference, { pull: 'missing' })
  const compose = JSON.stringify({ services: { web: { image: reference } } })
  api.fakes.git.commit(URL, 'main', { 'compose.yaml': compose })
  const call = api.as('developer')
  const { body } = await call.post('/api/apps', {
    ...{ name: 'stack', git_url: URL, source: 'compose', soak_seconds: 0 },
  })
  await api.services.jobs.idle()
  const [deployment] = (await call.get(`/api/apps/${body.data.id}/deployments`)).body.data
  const made = api.fakes.engine.calls.some(({ method }) => method === 'ensureRelease')
  return [deployment.status, deployment.error?.code, made]
}

test.each(['', 'docker.io/', 'index.docker.io/'])(
  'a service of a compose file runs no image that was built for an app, with %j before its name',
  async (registry) => {
    const reference = `${registry}portreeve/app_other:dep_other`
    expect(await deployed(reference)).toEqual(['failed', 'compose_refused', false])
  },
)

test('a service runs no image of an app under another name either', async () => {
  expect(await deployed('elsewhere/app:1', 'prj_other')).toEqual(['failed', 'image_not_found', false])
})

test('a service runs an image that only this server has, if it belongs to nobody', async () => {
  expect(await deployed('elsewhere/app:1')).toEqual(['live', undefined, true])
})

test('a name below portreeve/ may be given to what a service is built from', async () => {
  const compose = 'services: {web: {image: portreeve/web, build: {dockerfile_inline: "FROM scratch"}}}'
  const { status } = await api.as('developer').post('/api/apps', { name: 'built', compose })
  expect(status).toBe(201)
})
