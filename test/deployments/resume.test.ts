import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

const URL = 'https://git.example.com/team/shop.git'

let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(() => api.close())

it('the log says which step begins anew after Portreeve was restarted, once and in front of what the step does again', async () => {
  api.fakes.git.commit(URL, 'main', {
    'package.json': '{"name":"shop","scripts":{"start":"node server.js"}}',
    'server.js': '//',
  })
  api.fakes.engine.behave(() => true, { build: 'hang' })
  const { id } = (
    await api.as('developer').post('/api/apps', { name: 'shop', git_url: URL, soak_seconds: 0 })
  ).body.data
  const [{ id: deployment }] = (await api.as('viewer').get(`/api/apps/${id}/deployments`)).body.data
  await expect.poll(() => api.fakes.engine.calls.some(({ method }) => method === 'buildImage')).toBe(true)
  await api.services.jobs.stop()
  api.fakes.engine.behave(() => true, {})
  api.services.jobs.start()
  await api.services.jobs.idle()
  expect((await api.as('viewer').get(`/api/deployments/${deployment}`)).body.data.status).toBe('live')
  const lines: { step: string; stream: string; text: string }[] = (
    await api.as('viewer').get(`/api/deployments/${deployment}/logs`)
  ).body.data
  const told = lines.flatMap((line, index) =>
    line.text === 'Portreeve was restarted; this step begins anew.'
      ? [{ index, step: line.step, stream: line.stream }]
      : [],
  )
  const first_step = lines.flatMap((line, index) => (line.text.startsWith('[1/') ? [index] : []))
  expect(told).toEqual([{ index: first_step[1]! - 1, step: 'build', stream: 'system' }])
})

it('what the engine says in nanoseconds is told in milliseconds, in its order', async () => {
  api.fakes.git.commit(URL, 'main', {
    'package.json': '{"name":"shop","scripts":{"start":"node server.js"}}',
    'server.js': '//',
  })
  const { id } = (
    await api.as('developer').post('/api/apps', { name: 'shop', git_url: URL, soak_seconds: 0, replicas: 2 })
  ).body.data
  await api.services.jobs.idle()
  const { instances } = api.fakes.engine
  api.fakes.engine.instances = async (filter) =>
    (await instances(filter)).map((instance) => ({
      ...instance,
      started_at: '2026-01-31T12:00:00.123456789Z',
    }))
  let printed = 3
  api.fakes.engine.logs = async function* () {
    printed -= 1
    yield {
      at: `2026-01-31T12:00:00.00100${printed}000Z`,
      stream: 'stdout',
      text: `line ${printed}`,
    }
  }
  expect(
    (await api.as('viewer').get(`/api/apps/${id}/instances`)).body.data.map(
      ({ started_at }: { started_at: string }) => started_at,
    ),
  ).toEqual(['2026-01-31T12:00:00.123Z', '2026-01-31T12:00:00.123Z'])
  const lines: { at: string; text: string }[] = (await api.as('viewer').get(`/api/apps/${id}/logs`)).body.data
  expect(lines.map(({ at, text }) => [at, text])).toEqual([
    ['2026-01-31T12:00:00.001Z', 'line 1'],
    ['2026-01-31T12:00:00.001Z', 'line 2'],
  ])
})
