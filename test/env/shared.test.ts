import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { statementsDuring } from '#test/support/statements'

const MANY = 300
let projects = 0
let api: TestApi
let app_id: string
let project_id: string
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
  project_id = api.services.http.default_project()
  app_id = (await api.as('owner').post('/api/apps', { name: 'shop', source: 'upload' })).body.data.id
  await api.as('owner').post(`/api/apps/${app_id}/env`, { key: 'OWN', value: 'x' })
})
afterAll(() => api.close())

const shared = (count: number, value: string) =>
  Array.from({ length: count }, (_, n) => ({ key: `KEY_${n}`, value: `${value} ${n}` }))
const replace = (variables: { key: string; value?: string; secret?: boolean }[]) =>
  api.services.env.replaceShared(api.actor('owner'), project_id, { variables })
const kept = async () => (await api.as('admin').get(`/api/projects/${project_id}/env`)).body
const asked = (work: () => Promise<unknown>) => statementsDuring(api.kernel.db, work)

describe('the variables of a project', () => {
  it('are replaced by as many questions for history and for uses, however many come and go', async () => {
    const coming = await asked(() => replace(shared(MANY, 'first')))
    expect((await kept()).total).toBe(MANY)
    const going = await asked(() => replace([]))
    expect((await kept()).total).toBe(0)
    const about = (texts: string[], what: RegExp) => texts.filter((text) => what.test(text)).length
    expect(about(coming, /variable_versions/)).toBeLessThan(6)
    expect(about(going, /variable_versions/)).toBeLessThan(6)
    expect(about(going, /refs/)).toBeLessThan(6)
    expect(about(going, /DELETE FROM variables /)).toBe(1)
  })
  it('stay, where an app begins to stand for one of them while others are worked out', async () => {
    await replace(shared(MANY, 'second'))
    const replacing = replace(shared(MANY - 1, 'third'))
    api.services.env.add(api.actor('owner'), app_id, {
      key: 'USES',
      value: `\${{ project.KEY_${MANY - 1} }}`,
    })
    await expect(replacing).rejects.toThrow(
      `KEY_${MANY - 1} is in use: USES of the app shop stands for it. Change that first.`,
    )
    expect((await kept()).total).toBe(MANY)
  })
  it('that somebody else changed meanwhile are worked out from what is there then', async () => {
    const first = replace(shared(MANY, 'fourth'))
    const second = replace(shared(MANY, 'fifth'))
    expect((await first).changed).toHaveLength(MANY)
    expect((await second).changed).toHaveLength(MANY)
    const page = (await kept()).data as { value: string; version: number }[]
    expect(new Set(page.map(({ version }) => version))).toEqual(new Set([5]))
    // Whoever was written last, all values are of one of the two.
    expect(new Set(page.map(({ value }) => value.split(' ')[0])).size).toBe(1)
  })
  it('may stand for one another as they are to be, and not in a circle', async () => {
    const rest = shared(MANY, 'fifth')
    const named = [
      { key: 'A', value: `\${{project.B}}` },
      { key: 'B', value: 'b' },
    ]
    expect((await replace([...rest, ...named])).added).toEqual(['A', 'B'])
    await expect(replace([...rest, named[0]!, { key: 'B', value: `\${{project.A}}` }])).rejects.toThrow(
      'leads in a circle',
    )
    await expect(replace([...rest, named[0]!])).rejects.toThrow('names project.B')
  })
  it('go, where an app begins to stand for them only afterwards, and the app is told', async () => {
    const importing = api.services.env.importMany(api.actor('owner'), app_id, {
      variables: { LATER: `\${{ project.KEY_0 }}` },
      mode: 'merge',
    })
    const removing = api.kernel.db.sql(`DELETE FROM variables WHERE app_id IS NULL AND key = 'KEY_0'`)
    const noting = api.kernel.db.sql(
      `INSERT INTO variable_versions SELECT project_id, app_id, key, version + 1, 'deleted', '[]', NULL, 'x', created_at
       FROM variables WHERE app_id IS NULL AND key = 'KEY_0'`,
    )
    noting.run()
    removing.run()
    await expect(importing).rejects.toThrow('names project.KEY_0, which the project does not share')
  })
})

describe('the variables of a project that two people edit', () => {
  beforeEach(async () => {
    project_id = (await api.as('admin').post('/api/projects', { name: `Team ${++projects}` })).body.data.id
  })
  it('are not replaced by a list that was read before somebody else changed one of them', async () => {
    await replace([
      { key: 'A', value: '1' },
      { key: 'B', value: '2' },
      { key: 'C', value: '3' },
    ])
    const read = (await kept()).data as { key: string; version: number }[]
    const versions = Object.fromEntries(read.map(({ key, version }) => [key, version]))
    const send = async (keys: string[], more: object = {}) => {
      const variables = keys.map((key) => ({ key, ...(key in versions ? {} : { value: 'new' }) }))
      const body = { variables, versions: { ...versions, ...more } }
      const answer = await api.as('admin').put(`/api/projects/${project_id}/env`, body)
      return [answer.status, answer.body.error?.code, answer.body.error?.message]
    }
    const refused = (what: string) => [
      412,
      'PRECONDITION_FAILED',
      expect.stringMatching(new RegExp(`^${what} since the variables were read\\. Nothing was changed`)),
    ]
    await replace([{ key: 'A', value: 'other' }, { key: 'B' }, { key: 'C' }])
    expect(await send(['A', 'B', 'C'])).toEqual(refused('A was changed'))
    const { version } = (await kept()).data[0]
    versions.A = version
    await replace([{ key: 'A' }, { key: 'B' }, { key: 'C' }, { key: 'D', value: 'theirs' }])
    expect(await send(['A', 'B', 'C'])).toEqual(refused('D was added'))
    expect(await send(['A', 'B', 'C', 'D'], { D: 0 })).toEqual(refused('D was added'))
    await replace([{ key: 'A' }, { key: 'B' }])
    expect(await send(['A', 'B', 'C'])).toEqual(refused('C was removed'))
    delete versions.C
    expect(await send(['A', 'B', 'E'])).toEqual([200, undefined, undefined])
    expect((await kept()).data.map(({ key }: { key: string }) => key)).toEqual(['A', 'B', 'E'])
  })
  it('are looked at once more when they are written, since others change them while they are worked out', async () => {
    await replace(shared(MANY, 'sixth'))
    const [{ version }] = (await kept()).data
    const versions = Object.fromEntries(shared(MANY, '').map(({ key }) => [key, version]))
    const both = ['seventh', 'eighth'].map((value) =>
      api.services.env.replaceShared(api.actor('owner'), project_id, {
        variables: shared(MANY, value),
        versions,
      }),
    )
    const ended = await Promise.allSettled(both)
    expect(ended.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  })
})
