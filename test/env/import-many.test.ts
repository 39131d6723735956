import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

let api: TestApi
let app_id: string
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
  app_id = (await api.as('owner').post('/api/apps', { name: 'shop', source: 'upload' })).body.data.id
})
afterAll(() => api.close())

const MANY = 1900
const variables = (value: string) =>
  Object.fromEntries(Array.from({ length: MANY }, (_, n) => [`KEY_${n}`, `${value} ${n}`]))
const valueOf = (key: string) => api.services.env.reveal(api.actor('owner'), app_id, key).value

describe('an import of many variables', () => {
  it('lets others in between while it is worked out', async () => {
    let turns = 0
    let is_under_way = true
    const count = () => {
      turns += 1
      if (is_under_way) setImmediate(count)
    }
    setImmediate(count)
    const report = await api.services.env.importMany(api.actor('owner'), app_id, {
      variables: variables('first'),
      mode: 'merge',
    })
    is_under_way = false
    expect(report.added).toHaveLength(MANY)
    expect(valueOf('KEY_1899')).toBe('first 1899')
    expect(turns).toBeGreaterThanOrEqual(10)
  })
  it('takes what somebody else did meanwhile as it is then', async () => {
    const actor = api.actor('owner')
    const importing = api.services.env.importMany(actor, app_id, {
      variables: variables('second'),
      mode: 'merge',
    })
    api.services.env.change(actor, app_id, 'KEY_0', { value: 'meanwhile' })
    api.services.env.change(actor, app_id, 'KEY_1', { value: 'second 1' })
    api.services.env.remove(actor, app_id, 'KEY_2')
    api.services.env.add(actor, app_id, { key: 'OTHER', value: 'stays' })
    const report = await importing
    expect(report.unchanged).toEqual(['KEY_1'])
    expect(report.added).toEqual(['KEY_2'])
    expect([valueOf('KEY_0'), valueOf('KEY_2'), valueOf('OTHER')]).toEqual(['second 0', 'second 2', 'stays'])
    const history = await api.as('owner').get(`/api/apps/${app_id}/env?q=KEY_0&per_page=1`)
    expect(history.body.data[0].version).toBe(3)
  })
  it('applies nothing when one of them is wrong', async () => {
    const answer = await api.as('owner').post(`/api/apps/${app_id}/env/import`, {
      variables: { ...variables('third'), KEY_1899: `\${{nothing.THERE}}` },
    })
    expect(answer.status).toBe(422)
    expect(valueOf('KEY_0')).toBe('second 0')
  })
  it('leaves a bounded history of what is gone, and is told by a hundred keys', async () => {
    const actor = api.actor('owner')
    for (const round of ['A', 'B', 'C', 'D'])
      await api.services.env.importMany(actor, app_id, {
        variables: Object.fromEntries(Array.from({ length: MANY }, (_, n) => [`${round}_${n}`, 'x'])),
        mode: 'replace',
      })
    const versions = api.kernel.db.sql('SELECT count(*) FROM variable_versions WHERE app_id = ?').pluck()
    expect(versions.get(app_id)).toBe(4000 + MANY)
    const { payload } = api.events().findLast(({ type }) => type === 'env.changed')!
    expect(payload).toMatchObject({ added: { length: 100 }, removed: { length: 100 }, changed: [] })
    expect((payload.added as string[])[0]).toBe('D_0')
  })
})
