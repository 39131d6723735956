import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { poll } from '#test/support/poll'
import { makeResources } from '#test/support/resources'
import { readDefinitions } from '#test/support/routes'

/** In the form of a time, and none that can be read, or shown as others are. */
const NO_TIMES = ['2027-01-01T10:00:00+05', '2027-01-01T10:00:00 -05:00', '9999-12-31T23:59:59-23:59']
const SENTENCE = 'must be a time such as 2026-11-22T12:00:00Z.'
const endpoints = await readDefinitions()

let api: TestApi
let document: any
let ids: Record<string, string>
beforeAll(async () => {
  api = await createTestApi()
  ids = await makeResources(api, 'admin', {
    project_id: api.services.http.default_project(),
    mark: 'times',
  })
  document = (await api.as('admin').get('/api/openapi.json')).body
})
afterAll(() => api.close())

function resolved(schema: any): any {
  if (!schema?.$ref) return schema
  const keys = (schema.$ref as string).split('/').slice(1)
  return resolved(keys.reduce((at, key) => at[key], document))
}
const isTime = (schema: any): boolean =>
  schema?.format === 'date-time' || (schema?.anyOf ?? []).some((part: any) => isTime(resolved(part)))

/** Every parameter and every field of a body that takes a time, with how to send one in it. */
function times() {
  return endpoints.flatMap(({ method, path, definition }) => {
    const { scope } = definition
    const at = path.replace(/:\w+/g, ids[typeof scope === 'object' ? scope.noun : ''] ?? ids.alert_rule!)
    const operation = document.paths[path.replace(/:(\w+)/g, '{$1}')][method]
    const queries = (operation.parameters ?? [])
      .map(resolved)
      .filter((one: any) => one.in === 'query' && isTime(resolved(one.schema)))
    const body = resolved(operation.requestBody?.content?.['application/json']?.schema)
    const fields = Object.keys(body?.properties ?? {}).filter((name) =>
      isTime(resolved(body.properties[name])),
    )
    return [
      ...queries.map(({ name }: any) => ({
        name: `${method} ${path}?${name}`,
        send: (time: string) =>
          api.request(method.toUpperCase(), `${at}?${name}=${encodeURIComponent(time)}`, { as: 'admin' }),
      })),
      ...fields.map((name) => ({
        name: `${method} ${path} ${name}`,
        send: (time: string) =>
          api.request(method.toUpperCase(), at, {
            as: 'admin',
            body: { ...(definition.example as object), [name]: time },
          }),
      })),
    ]
  })
}

describe('a time in a request', () => {
  it('that cannot be read is refused by the name of its field, wherever one is taken', async () => {
    const wrong: string[] = []
    for (const { name, send } of times())
      for (const time of NO_TIMES) {
        const { status, body, text } = await send(time)
        const field = name.split(/[ ?]/).at(-1)
        if (![400, 422].includes(status) || !body.error.message.startsWith(`${field}: ${SENTENCE}`))
          wrong.push(`${name} with ${time}: ${status} ${text}`)
      }
    expect(wrong).toEqual([])
    expect(times().length).toBeGreaterThan(12)
  })
  it('is the same moment in every offset, and to the millisecond, for a log as well', async () => {
    const read = async (query = '') =>
      (await api.as('admin').get(`/api/apps/${ids.app}/logs?type=build${query}`)).body.data as {
        at: string
      }[]
    await poll(async () => (await read()).length > 0)
    const [{ at }] = (await read()) as [{ at: string }]
    const said = (offset: number) =>
      encodeURIComponent(
        `${new Date(Date.parse(at) + offset * 3_600_000).toISOString().slice(0, -1)}+0${offset}:00`,
      )
    const whole_second = `${at.slice(0, 19)}Z`
    for (const time of [said(0), said(2), said(9), whole_second]) {
      expect((await read(`&since=${time}`)).length, `since ${time}`).toBeGreaterThan(0)
      expect(await read(`&until=${time}`), `until ${time}`).toEqual([])
    }
  })
  it('is shown as all others are', async () => {
    const { body } = await api
      .as('admin')
      .post('/api/auth/api-keys', { name: 'ends', expires_at: '2027-01-01 12:00:00 +0200' })
    expect(body.data?.expires_at).toBe('2027-01-01T10:00:00.000Z')
  })
})
