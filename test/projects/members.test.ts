import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Revocation } from '#server/identity/revocations'
import { createTestApi, type TestApi } from '#test/support/api'

let api: TestApi
beforeEach(async () => {
  api = await createTestApi({ jobs: false })
})
afterEach(() => api.close())

it('whoever comes into a project, gets another role in it or leaves it is announced, so that what they have open is asked again', async () => {
  const owner = api.as('owner')
  const { user_id } = api.actor('outsider')
  const project_id = (await owner.post('/api/projects', { name: 'shop' })).body.data.id
  const heard: Revocation[] = []
  api.services.identity.revocations.subscribe((revocation) => heard.push(revocation))
  const announced = async (answer: Promise<{ status: number; text: string }>) => {
    heard.length = 0
    const { status, text } = await answer
    expect([status < 300, text]).toEqual([true, text])
    return heard.filter((one) => one.user_id === user_id)
  }
  const members = `/api/projects/${project_id}/members`
  const once = [{ kind: 'user', user_id }]
  expect(await announced(owner.post(members, { user_id, role: 'developer' }))).toEqual(once)
  expect(await announced(owner.put(`${members}/${user_id}`, { role: 'viewer' }))).toEqual(once)
  expect(await announced(owner.delete(`${members}/${user_id}`))).toEqual(once)
  await owner.post(members, { user_id, role: 'viewer' })
  expect(await announced(owner.delete(`/api/projects/${project_id}`))).toEqual(once)
})
