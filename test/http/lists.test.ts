import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { AnyEndpoint } from '#server/http/definition'
import { createTestApi, type TestApi } from '#test/support/api'
import { makeResources } from '#test/support/resources'
import { readDefinitions } from '#test/support/routes'

type Entries = Record<string, any>
const entriesOf = ({ query }: AnyEndpoint): Entries => query?.entries ?? {}
const innermost = (schema: any): any => (schema?.wrapped ? innermost(schema.wrapped) : schema)
/** What a parameter that takes several values takes, one by one. */
const choicesOf = (schema: any): string[] => innermost(schema)?.pipe?.[0]?.item?.options ?? []
/** Every list with pages. */
const lists = (await readDefinitions()).filter(
  ({ method, definition }) => method === 'get' && definition.response?.entries?.pages,
)
/** What is found by how well it fits has no other order. */
const RANKED = ['/api/search']

/** What stands in an item of a list. */
const itemEntries = ({ response }: AnyEndpoint): Entries => {
  const item = response?.entries.data.item
  return item?.entries ?? item?.pipe?.[0]?.entries ?? {}
}
/** The trail, jobs and what is searched: of a project they have a path, or are looked for by what they are about. */
const UNFILTERED = ['/api/search', '/api/audit-logs', '/api/system/jobs', '/api/monitoring/alerts/history']

let api: TestApi
let ids: Record<string, string>
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
  for (const mark of ['zulu', 'alpha']) {
    const { body } = await api.as('admin').post('/api/projects', { name: `${mark} project` })
    ids = await makeResources(api, 'admin', { project_id: body.data.id as string, mark }).catch(
      (error: Error) => {
        throw new Error(`${mark}: ${error.message}`)
      },
    )
  }
})
afterAll(() => api.close())

const addressOf = ({ path, definition }: (typeof lists)[number], query: string): string => {
  const { scope } = definition
  const noun = typeof scope === 'object' ? scope.noun : ''
  return `${path.replace(/:\w+/g, ids[noun] ?? 'none')}?${query}`
}
const read = (list: (typeof lists)[number], query: string) =>
  api.as('admin').get(addressOf(list, list.path === '/api/search' ? `q=a&${query}` : query))

/** Whether values go up, as people read them; null comes before anything. */
function goesUp(values: unknown[]): boolean {
  const keys = values.map((value) => (typeof value === 'string' ? value.toLowerCase() : value))
  return keys.slice(1).every((value, index) => {
    const before = keys[index] as string | null
    return before === null || before === undefined || (value !== null && (value as string) >= before)
  })
}

/** What tells a row from others: nodes and the like tell what is measured now, which is another number each time. */
const identityOf = (row: any) => row.id ?? row
describe('every list with pages', () => {
  it('can be ordered, but for a search', () => {
    const without = lists.filter(({ definition }) => choicesOf(entriesOf(definition).sort).length === 0)
    expect(without.map(({ path }) => path)).toEqual(RANKED)
  })
  it('of what lies in projects can be narrowed to one, unless its path says which', async () => {
    const narrowed = lists.filter(
      ({ path, definition }) => !path.includes(':') && 'project_id' in itemEntries(definition),
    )
    expect(narrowed.length).toBeGreaterThan(10)
    const wrong: string[] = []
    for (const list of narrowed.filter(({ path }) => !UNFILTERED.includes(path))) {
      const all = (await read(list, 'per_page=100')).body.data as { project_id: string | null }[]
      const project_id = all.find((row) => row.project_id !== null)?.project_id
      const { status, body } = await read(list, `per_page=100&project_id=${project_id}`)
      const expected = all.filter((row) => row.project_id === project_id).length
      if (status !== 200 || body.total !== expected || expected === 0)
        wrong.push(`${list.path}: ${status}, ${body.total} of ${expected}`)
    }
    expect(wrong).toEqual([])
  })
  it('takes several values for each filter that names things or states', () => {
    const single = lists.flatMap(({ path, definition }) =>
      Object.entries(entriesOf(definition))
        .filter(([name, schema]) => /_id$/.test(name) || innermost(schema).type === 'picklist')
        .map(([name]) => `${path} ${name}`),
    )
    const formats = ['/api/audit-logs format', '/api/projects/:id/audit-logs format']
    expect(single.filter((one) => !formats.includes(one) && !/ \w+_id$/.test(one))).toEqual([])
    const by_id = lists.flatMap(({ path, definition }) =>
      Object.entries(entriesOf(definition))
        .filter(([name, schema]) => /_id$/.test(name) && innermost(schema).type !== 'array')
        .map(([name]) => `${path} ${name}`),
    )
    expect(by_id).toEqual([])
  })
  it('comes in the order that was asked for, upwards and downwards', async () => {
    const wrong: string[] = []
    let compared = 0
    for (const list of lists) {
      for (const choice of choicesOf(entriesOf(list.definition).sort)) {
        const { status, body, text } = await read(list, `sort=${choice}&per_page=100`)
        if (status === 404) break
        if (status !== 200) {
          wrong.push(`${list.path} ${choice}: ${status} ${text}`)
          continue
        }
        const rows = body.data as Record<string, unknown>[]
        const field = choice.replace('-', '')
        if (rows.some((row) => !(field in row))) wrong.push(`${list.path}: no row shows ${field}`)
        const values = rows.map((row) => row[field])
        if (choice.startsWith('-')) values.reverse()
        if (new Set(values).size > 1) compared += 1
        if (!goesUp(values)) wrong.push(`${list.path} ${choice}: ${JSON.stringify(values)}`)
      }
    }
    expect(wrong).toEqual([])
    expect(compared).toBeGreaterThan(30)
  })
  it('is the same list in pieces, in any order: nothing twice, nothing left out', async () => {
    const wrong: string[] = []
    for (const list of lists) {
      const [choice = ''] = choicesOf(entriesOf(list.definition).sort)
      const order = choice ? `sort=${choice}&` : ''
      const answer = await read(list, `${order}per_page=100`)
      // Of what no fixture makes there is no list to read.
      if (answer.status === 404) continue
      const whole = answer.body.data.slice(0, 3)
      const pieces: unknown[] = []
      for (let page = 1; page <= whole.length; page += 1)
        pieces.push(...(await read(list, `${order}per_page=1&page=${page}`)).body.data)
      if (JSON.stringify(whole.map(identityOf)) !== JSON.stringify(pieces.map(identityOf)))
        wrong.push(list.path)
    }
    expect(wrong).toEqual([])
  })
  it('shows what has any of the values, given with commas or one by one', async () => {
    const wrong: string[] = []
    let compared = 0
    for (const list of lists) {
      const { status, body: all } = await read(list, 'per_page=100')
      if (status === 404) continue
      for (const [name, schema] of Object.entries(entriesOf(list.definition))) {
        if (innermost(schema).type !== 'array' || name === 'sort') continue
        const values = [...new Set((all.data as any[]).map((row) => row[name]))]
          .filter((value): value is string => typeof value === 'string')
          .slice(0, 15)
        if (values.length === 0 || all.total > 100 || !all.data.every((row: any) => name in row)) continue
        const fitting = (all.data as any[]).filter((row) => values.includes(row[name])).length
        for (const query of [`${name}=${values}`, values.map((value) => `${name}=${value}`).join('&')]) {
          const some = (await read(list, `${query}&per_page=100`)).body
          if (some.total !== fitting) wrong.push(`${list.path}?${query}: ${some.total}, not ${fitting}`)
        }
        compared += 1
      }
    }
    expect(wrong).toEqual([])
    expect(compared).toBeGreaterThan(15)
  })
})

describe('what a list refuses', () => {
  it.each([
    ['/api/apps?sort=colour', 'sort: must be one of "name", "-name", "status", "-status"'],
    ['/api/apps?sort=name;drop', 'sort: must be one of'],
    ['/api/apps?sort=', 'sort: must be one of'],
    ['/api/apps?sort=name,name,name,name', 'sort: must have at most 3 items.'],
    ['/api/apps?status=running,nowhere', 'status: must be one of "building"'],
    ['/api/apps?q=a&q=b', 'q: must be given once.'],
  ])('%s: 400 with a sentence that begins %s', async (path, sentence) => {
    const { status, body } = await api.as('admin').get(path)
    expect(status).toBe(400)
    expect(body.error.code).toBe('BAD_REQUEST')
    expect(body.error.message).toContain(sentence)
    expect(body.error.details?.[0]?.path ?? path).not.toMatch(/\.\d/)
  })
})
