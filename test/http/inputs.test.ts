import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import type { Answer } from '#test/support/http-server'
import { expand, type InputCase, readInputs, wholeBody, withField } from '#test/support/inputs'
import { readEndpoints } from '#test/support/routes'

/** How the fields of the two files are called in a request. */
const FIELDS: Record<string, string> = {
  'POST /api/domains domain': 'hostname',
  'POST /api/apps/:id/env env.key': 'key',
  'POST /api/apps/:id/env env.value': 'value',
  'POST /api/cron-jobs cron': 'expression',
  'POST /api/cron-jobs cron.command': 'command',
}
const served = new Set(readEndpoints().map((route) => `${route.method.toUpperCase()} ${route.path}`))
const isServed = (input: InputCase) => served.has(input.endpoint)

let api: TestApi
let app_id: string
let number = 0
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
  const created = await api
    .as('admin')
    .post('/api/apps', { name: 'existing', git_url: 'https://git.example.com/team/shop.git' })
  app_id = created.body.data.id
})
afterAll(() => api.close())

const BASES: Record<string, () => Record<string, unknown>> = {
  'POST /api/apps': () => ({
    name: `app-${(number += 1)}`,
    git_url: 'https://git.example.com/team/shop.git',
  }),
  'POST /api/domains': () => ({ app_id }),
  'POST /api/team/members': () => ({ email: 'ada@example.test' }),
  'POST /api/auth/login': () => ({ email: 'admin@localhost', password: 'not the password' }),
  'PUT /api/apps/:id': () => ({}),
  'POST /api/cron-jobs': () => ({ app_id, expression: '0 4 * * *', command: 'true' }),
  'POST /api/apps/:id/env': () => ({ key: `KEY_${(number += 1)}`, value: 'x' }),
}

function send(input: InputCase): Promise<Answer> {
  const [method = '', pattern = ''] = input.endpoint.split(' ')
  const field = FIELDS[`${input.endpoint} ${input.field}`] ?? input.field
  const value = field === '$body' ? input.value : expand(input.value)
  const path = pattern
    .replace(':id', field === 'id' ? encodeId(String(value)) : app_id)
    .replace(':slug', 'ghost')
  const header = /^header\.(.+)$/.exec(field)?.[1]
  if (header) {
    const headers = {
      ...(header === 'Authorization' ? {} : { authorization: 'Bearer test-admin' }),
      [header]: String(value),
    }
    return api.request(method, path, method === 'GET' ? { headers } : { headers, raw: 'name=a' })
  }
  if (method === 'GET') {
    const search =
      field === 'id'
        ? ''
        : `?${[value]
            .flat()
            .map((one) => `${field}=${encodeURIComponent(String(one))}`)
            .join('&')}`
    return api.request(method, path + search, { as: 'admin' })
  }
  if (field === '$body')
    return api.request(method, path, {
      as: 'admin',
      raw: wholeBody(value as Record<string, unknown>),
      headers: { 'content-type': 'application/json' },
    })
  const { git_url, ...base } = BASES[input.endpoint]?.() ?? {}
  const body = field === 'image' ? base : { ...base, ...(git_url === undefined ? {} : { git_url }) }
  return api.request(method, path, {
    as: input.endpoint.includes('/auth/') ? undefined : 'admin',
    body: field === 'env' ? variableOf(value) : withField(body, field, value),
  })
}
/** The files write a variable as an object of one key. */
const variableOf = (value: unknown) => {
  const [[key, text] = []] = Object.entries(value as object)
  return { key, value: text }
}
/**
 * Ids of the files are parts of a path; only quotes and spaces need encoding, malformed percents are the
 * point.
 */
const encodeId = (id: string) => id.replaceAll(' ', '%20').replaceAll("'", '%27')

describe('an input that must be refused', () => {
  it.each(
    readInputs('inputs-bad')
      .filter(isServed)
      .map((input) => [`${input.endpoint} ${input.field}: ${input.why}`, input] as const),
  )('%s', async (_name, input) => {
    const before = api.services.events.latest()
    const answer = await send(input)
    expect([input.expect_status].flat(), answer.text).toContain(answer.status)
    if (answer.status < 400) return
    expect(answer.body.error).toMatchObject({
      code: expect.any(String),
      message: expect.any(String),
    })
    if (input.expect_code && [input.expect_status].flat()[0] === answer.status)
      expect(answer.body.error.code).toBe(input.expect_code)
    expect(api.services.events.latest()).toBe(before)
    const sent = expand(input.value)
    if (typeof sent === 'string' && sent.length > 12 && !input.field.startsWith('$'))
      expect(answer.text).not.toContain(sent)
  })
})

describe('an input that must be accepted', () => {
  it.each(
    readInputs('inputs-good')
      .filter(isServed)
      .map((input) => [`${input.endpoint} ${input.field}: ${input.why}`, input] as const),
  )('%s', async (_name, input) => {
    const answer = await send(input)
    expect([input.expect_status].flat(), answer.text).toContain(answer.status)
  })
})

it('covers every endpoint of the two files that is served', () => {
  const named = new Set(
    [...readInputs('inputs-bad'), ...readInputs('inputs-good')].map((input) => input.endpoint),
  )
  expect([...named].filter((endpoint) => served.has(endpoint)).length).toBeGreaterThanOrEqual(6)
})
