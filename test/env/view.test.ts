import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createVariableRepository } from '#server/env/repository'
import { createVault } from '#server/env/values'
import { createVariableViews } from '#server/env/view'
import { createTestApi, type TestApi } from '#test/support/api'
import { commitShop, SHOP_URL } from '#test/support/shop'

let api: TestApi
let app_id: string
let project_id: string
beforeEach(async () => {
  api = await createTestApi({ jobs: false })
  commitShop(api, 'one')
  project_id = api.services.http.default_project()
  app_id = (await api.as('developer').post('/api/apps', { name: 'shop', git_url: SHOP_URL })).body.data.id
})
afterEach(() => api.close())

/** The views with eyes on what they ask of the database and of the vault. */
function watched() {
  const repository = createVariableRepository(api.kernel.db)
  const vault = createVault(api.kernel.secrets)
  const versions = vi.spyOn(repository, 'versions')
  const opened = vi.spyOn(vault, 'openReadable')
  return { repository, versions, opened, views: createVariableViews(repository, vault) }
}
const variables = (count: number) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, n) => [`KEY_${String(n).padStart(3, '0')}`, `value ${n}`]),
  )

describe('a page of variables', () => {
  it('asks for all histories at once, opens what it shows once, and no secret at all', async () => {
    const developer = api.as('developer')
    await developer.post(`/api/apps/${app_id}/env/import`, { variables: variables(100), mode: 'merge' })
    await developer.put(`/api/apps/${app_id}/env/KEY_000`, { preview_value: 'other' })
    const secret = { key: 'TOKEN', value: 'hidden', preview_value: 'hidden too', secret: true }
    await developer.post(`/api/apps/${app_id}/env`, secret)
    const { repository, versions, opened, views } = watched()
    const shown = views.variables(repository.all({ app_id }))
    expect([shown.length, versions.mock.calls.length, opened.mock.calls.length]).toEqual([101, 1, 100])
    expect(shown[0]).toMatchObject({ value: 'value 0', preview_value: 'other', history: [{}, {}] })
    expect(shown.at(-1)).toMatchObject({ key: 'TOKEN', value: '********', preview_value: '********' })
    expect(views.variables([])).toEqual([])
  })
  it('shows of each variable its own ten newest versions, as the variable alone does', async () => {
    const developer = api.as('developer')
    await developer.post(`/api/apps/${app_id}/env/import`, { variables: variables(3), mode: 'merge' })
    for (let n = 0; n < 12; n += 1)
      await developer.put(`/api/apps/${app_id}/env/KEY_001`, { value: `changed ${n}` })
    await developer.delete(`/api/apps/${app_id}/env/KEY_002`)
    await developer.post(`/api/apps/${app_id}/env`, { key: 'KEY_002', value: 'back' })
    await developer.put(`/api/projects/${project_id}/env`, { variables: [{ key: 'KEY_001', value: 'x' }] })
    const { repository, views } = watched()
    const rows = repository.all({ app_id })
    const shown = views.variables(rows)
    expect(shown).toEqual(rows.map(views.variable))
    expect(shown.map(({ history }) => history.map(({ version }) => version))).toEqual([
      [1],
      [13, 12, 11, 10, 9, 8, 7, 6, 5, 4],
      [3, 2, 1],
    ])
    expect(shown[2]!.history.map(({ action }) => action)).toEqual(['created', 'deleted', 'created'])
    expect(views.shared(repository.all({ project_id }))).toMatchObject([
      { value: 'x', history: [{ version: 1, action: 'created', by: { name: 'developer' } }] },
    ])
  })
})
