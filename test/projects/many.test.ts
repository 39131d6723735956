import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
})
afterEach(() => api.close())

/** Projects of which these are owners, made at once. */
function fill(count: number, ...owners: ('owner' | 'outsider' | 'admin')[]): void {
  const { db, clock } = api.kernel
  const at = clock.iso()
  db.tx(() => {
    for (let n = 0; n < count; n += 1) {
      const id = `prj_${owners.join('')}${n}`
      db.sql(
        `INSERT INTO projects (id, name, description, is_default, quotas, created_at, updated_at) VALUES (?, ?, '', 0, '{}', ?, ?)`,
      ).run(id, `${owners.join(' and ')} ${n}`, at, at)
      for (const owner of owners)
        db.sql('INSERT INTO project_members VALUES (?, ?, ?, ?)').run(
          id,
          api.actor(owner).user_id,
          'owner',
          at,
        )
    }
  })
}
const make = (as: 'owner' | 'outsider' | 'admin') => api.as(as).post('/api/projects', { name: 'one more' })

it('a member is the only owner of 100 projects at most: what a project may have would limit nobody, and each of their requests reads all roles', async () => {
  fill(99, 'owner')
  expect((await make('owner')).status).toBe(201)
  const { status, body } = await api.as('owner').post('/api/projects', { name: 'too many' })
  expect([status, body.error.message]).toEqual([409, expect.stringContaining('only owner of 100 projects')])
  expect((await make('outsider')).status).toBe(201)
})
it('nobody is in more than 1000 projects, whoever adds them', async () => {
  fill(1000, 'owner', 'outsider')
  expect(await make('owner')).toMatchObject({ status: 409 })
  const { body } = await api.as('developer').post('/api/projects', { name: 'full' })
  const add = await api
    .as('developer')
    .post(`/api/projects/${body.data.id}/members`, { email: 'outsider@example.test', role: 'viewer' })
  expect([add.status, add.body.error.message]).toEqual([409, expect.stringContaining('1000 projects')])
})
it('an administrator makes as many as the installation needs', async () => {
  fill(100, 'admin')
  expect((await make('admin')).status).toBe(201)
})
it('everything in a project is ordered by one field up to 5,000 resources: others wait while it is sorted', async () => {
  const { id } = (await api.as('owner').post('/api/projects', { name: 'crowded' })).body.data
  const { db } = api.kernel
  const insert = (from: number, to: number) =>
    db.tx(() => {
      for (let n = from; n < to; n += 1)
        db.sql(
          `INSERT INTO volumes (id, project_id, name, status, access, created_at, updated_at)
           VALUES (?, ?, ?, 'ready', 'shared', '', '')`,
        ).run(`vol_crowd${n}`, id, `crowd-${n}`)
    })
  const ask = (query: string) => api.as('owner').get(`/api/projects/${id}/resources?${query}`)
  insert(0, 5_000)
  expect((await ask('sort=name')).body).toMatchObject({ total: 5_000, data: { length: 20 } })
  insert(5_000, 5_001)
  const { status, body } = await ask('sort=name')
  expect([status, body.error.message]).toEqual([400, expect.stringMatching(/^sort: .*5000.* kind/)])
  expect((await ask('sort=name&kind=app')).body.total).toBe(0)
  expect((await ask('page=2')).body).toMatchObject({ total: 5_001, data: { length: 20 } })
})
