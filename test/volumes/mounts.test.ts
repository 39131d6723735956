import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { roundsDuring, toil } from '#test/support/rounds'

let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(() => api.close())

it('the digests of many large files of an app are worked out with others served in between', async () => {
  const developer = api.as('developer')
  const app = (await developer.post('/api/apps', { name: 'shop', image: 'nginx:1.29' })).body.data
  await api.services.jobs.idle()
  for (let n = 0; n < 10; n += 1)
    await developer.post(`/api/apps/${app.id}/mounts`, { path: `/etc/file-${n}`, content: `text ${n}` })
  const { secrets } = api.kernel
  const { open } = secrets
  secrets.open = (...given) => {
    toil()
    return open(...given)
  }
  let found: unknown[] = []
  const actor = api.actor('developer')
  const rounds = await roundsDuring(async () => {
    found = await api.services.volumes.mountsFor(actor, app.id)
  })
  expect(found).toHaveLength(10)
  expect(found).toContainEqual(
    expect.objectContaining({ content_sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }),
  )
  expect(rounds).toBeGreaterThan(8)
})
