import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { pretendServer } from '../databases/server.ts'

let api: TestApi
let id: string
let project_id: string
beforeEach(async () => {
  api = await createTestApi()
  pretendServer(api)
  project_id = api.services.http.default_project()
  id = (await api.as('developer').post('/api/databases', { name: 'orders', engine: 'postgres' })).body.data.id
  await api.services.jobs.idle()
})
afterEach(() => api.close())

const allow = async (backup_bytes: number) =>
  expect(
    (await api.as('admin').put(`/api/projects/${project_id}`, { quotas: { backup_bytes } })).status,
  ).toBe(200)
const backUp = () => api.as('developer').post(`/api/databases/${id}/backup`)
const backups = async (): Promise<{ id: string; status: string; size_bytes: number; error: string }[]> => {
  await api.services.jobs.idle()
  return (await api.as('viewer').get('/api/backups?per_page=100')).body.data
}

describe('once the backups of a project hold what its quota lets them', () => {
  it('nobody adds to them, be it by hand, by a schedule, with a dump or by a deletion', async () => {
    await backUp()
    const [first] = await backups()
    await allow(first!.size_bytes)
    const schedule = { name: 'Nightly', target: 'database', target_id: id, cron: '@daily' }
    const made = await api.as('developer').post('/api/backup-schedules', schedule)
    const refusal = `Backups of the project may hold ${first!.size_bytes} bytes together, and hold ${first!.size_bytes}.`
    for (const answer of [
      await backUp(),
      await api.as('developer').post(`/api/backup-schedules/${made.body.data.id}/run`),
      await api.request('POST', `/api/databases/${id}/restore`, {
        as: 'owner',
        body: 'SELECT 1;',
        headers: { 'content-type': 'application/octet-stream' },
      }),
      await api.as('owner').delete(`/api/databases/${id}`),
    ]) {
      expect([answer.status, answer.body.error?.message]).toEqual([409, expect.stringContaining(refusal)])
    }
    expect(await backups()).toHaveLength(1)
    expect((await api.as('owner').delete(`/api/databases/${id}?skip_backup=true`)).status).toBe(200)
  })

  it('those that were asked for before it was known how large they get are not taken', async () => {
    await allow(1)
    for (let at = 0; at < 3; at++) expect((await backUp()).status).toBeLessThan(300)
    const all = await backups()
    expect(all.map(({ status }) => status).sort()).toEqual(['failed', 'failed', 'succeeded'])
    expect(all.find(({ status }) => status === 'failed')!.error).toContain('the quota backup_bytes')
  })
})
