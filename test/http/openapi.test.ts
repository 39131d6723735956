import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createConfig, lintFromString, type NormalizedProblem } from '@redocly/openapi-core'
import { parse } from 'yaml'
import { createTestApi, type TestApi } from '#test/support/api'
import { readDefinitions, readEndpoints } from '#test/support/routes'
import { collectNamed } from '#server/http/openapi-schemas'
import { exampleOf } from '#server/http/openapi-examples'
import * as v from 'valibot'

type Operation = {
  operationId: string
  summary: string
  description: string
  tags: string[]
  'x-access'?: string
  security: object[]
  parameters?: any[]
  requestBody?: any
  responses: Record<string, any>
}
let api: TestApi
let document: any
let operations: { path: string; method: string; operation: Operation }[]
beforeAll(async () => {
  api = await createTestApi({
    jobs: false,
    environment: { PORTREEVE_PUBLIC_URL: 'https://portreeve.test' },
  })
  document = (await api.request('GET', '/api/openapi.json', { as: 'viewer' })).body
  operations = Object.entries(document.paths as Record<string, Record<string, Operation>>).flatMap(
    ([path, item]) => Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  )
})
afterAll(() => api.close())
const problem = ({ ruleId, message, location }: NormalizedProblem) =>
  `${ruleId}: ${message} at ${location.map((place) => place.pointer).join()}`

describe('the OpenAPI document', () => {
  it("passes Redocly's recommended rules without a warning", async () => {
    const config = await createConfig({ extends: ['recommended'] })
    const problems = await lintFromString({ source: JSON.stringify(document), config })
    // An id of a webhook begins with `whk_`, so that none is called `git` or `deploy`.
    const meant = (text: string) =>
      /^no-ambiguous-paths.*\/webhooks\/\{id\}\/deliveries` and `\/api\/webhooks\/(git|deploy)\/\{token\}`/.test(
        text,
      )
    expect(
      problems
        .map(problem)
        .filter((text) => !meant(text))
        .slice(0, 20),
    ).toEqual([])
  })
  it('lists every route that is served, with its method, and nothing else', () => {
    const served = readEndpoints().map((route) => `${route.method} ${route.path.replace(/:(\w+)/g, '{$1}')}`)
    expect(operations.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(
      [...served, 'get /api/ws'].sort(),
    )
  })
  it('says of every operation who may call it, in a word that programs understand', async () => {
    const said = operations
      .filter(({ path }) => path !== '/api/ws')
      .map(({ method, path, operation }) => `${method} ${path} ${operation['x-access']}`)
    const meant = (await readDefinitions()).map(
      ({ method, path, definition }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')} ${definition.access}`,
    )
    expect(said.sort()).toEqual(meant.sort())
  })
  it('is the same as YAML', async () => {
    const answer = await api.request('GET', '/api/openapi.yaml', { as: 'viewer' })
    expect(answer.headers.get('content-type')).toContain('application/yaml')
    expect(parse(answer.text, { maxAliasCount: 0 })).toEqual(document)
  })
  it('tells a plain GET of the WebSocket what to do', async () => {
    const answer = await api.request('GET', '/api/ws', { as: 'viewer' })
    expect([answer.status, answer.body.error]).toEqual([
      400,
      { code: 'BAD_REQUEST', message: 'Open this path as a WebSocket.' },
    ])
  })
  it('has every code that an upgrade is refused with at its status', () => {
    const { responses } = document.paths['/api/ws'].get
    const codes = Object.entries<any>(responses).flatMap(([status, { $ref }]) => {
      const { content } = document.components.responses[$ref?.split('/').at(-1)] ?? {}
      const found = content?.['application/json'].schema.properties.error.properties.code.enum ?? []
      return found.map((code: string) => `${status} ${code}`)
    })
    expect(codes.sort()).toEqual([
      '400 BAD_REQUEST',
      '401 UNAUTHORIZED',
      '403 CSRF_INVALID',
      '403 PASSWORD_CHANGE_REQUIRED',
      '429 RATE_LIMITED',
      '503 UNAVAILABLE',
      'default BAD_REQUEST',
    ])
  })
  it('needs an account', async () => {
    expect((await api.request('GET', '/api/openapi.json')).status).toBe(401)
    expect(
      (await api.request('GET', '/api/openapi.json', { as: 'viewer' })).headers.get('content-type'),
    ).toContain('application/json')
  })
  it('names the running version and the address of this installation', () => {
    expect([document.openapi, document.info.version, document.servers]).toEqual([
      '3.1.0',
      '0.0.0',
      [{ url: 'https://portreeve.test', description: 'This installation.' }],
    ])
  })
  it('describes every operation: name, group, who may, typed success, typed errors with examples', () => {
    expect(new Set(operations.map(({ operation }) => operation.operationId)).size).toBe(operations.length)
    for (const { path, method, operation } of operations.filter((one) => one.path !== '/api/ws')) {
      const at = `${method} ${path}`
      expect(operation.summary, at).toMatch(/^[A-Z].{4,99}[^.]$/)
      expect(operation.description.length, at).toBeGreaterThan(20)
      expect(
        document.tags.map((tag: { name: string }) => tag.name),
        at,
      ).toContain(operation.tags[0])
      const success = Object.keys(operation.responses).filter((status) => status.startsWith('2'))
      expect(success, at).toHaveLength(1)
      expect(Object.values<any>(operation.responses[success[0]!].content)[0].schema, at).toBeDefined()
      for (const status of ['400', '500']) expect(operation.responses[status], at).toBeDefined()
      if (operation.security.length > 0) expect(operation.responses['401'], at).toBeDefined()
      const json = operation.requestBody?.content['application/json']
      if (json && json.schema.format !== 'binary') {
        expect(operation.responses['422'], at).toBeDefined()
        expect(json.example, at).toBeDefined()
      }
    }
    for (const response of Object.values<any>(document.components.responses)) {
      if (!response.content) continue
      const { schema, examples } = response.content['application/json']
      expect(Object.keys(examples)).toEqual(schema.properties.error.properties.code.enum)
    }
  })
  it('lists what every operation may be answered before its own work begins', () => {
    const lacking = operations
      .filter(({ path }) => path !== '/api/ws')
      .flatMap(({ path, method, operation }) => {
        // Turns and shares bound every caller, and a body is read also where none is asked for.
        const statuses = ['429', ...(method === 'get' ? [] : ['408', '413', '415'])]
        return statuses
          .filter((status) => !operation.responses[status])
          .map((status) => `${method} ${path} ${status}`)
      })
    expect(lacking).toEqual([])
  })
  it('tells which answers have a tag, and that a client who holds one gets no body', async () => {
    const tagged: string[] = []
    for (const { path, method, operation } of operations) {
      if (method !== 'get' || path.includes('{') || path === '/api/ws') continue
      const answer = await api.request('GET', path, { as: 'admin' })
      if (answer.status !== 200) continue
      const has_tag = answer.headers.has('etag')
      expect([path, operation.responses['304'] !== undefined]).toEqual([path, has_tag])
      expect(Object.hasOwn(operation.responses['200'].headers, 'ETag')).toBe(has_tag)
      if (has_tag) tagged.push(path)
    }
    expect(tagged).toEqual(expect.arrayContaining(['/api/apps', '/api/openapi.yaml', '/api/asyncapi.json']))
    const { headers } = await api.request('GET', '/api/apps', { as: 'admin' })
    const again = await api.request('GET', '/api/apps', {
      as: 'admin',
      headers: { 'if-none-match': headers.get('etag')! },
    })
    expect([again.status, again.text]).toEqual([304, ''])
  })
  it.each(['json', 'csv', 'ndjson'])('names the type of an export as %s', async (format) => {
    const path = '/api/audit-logs'
    const { headers } = await api.request('GET', `${path}?format=${format}`, { as: 'admin' })
    const type = headers.get('content-type')?.split(';')[0] ?? ''
    expect(Object.keys(document.paths[path].get.responses['200'].content)).toContain(type)
  })
  it('says what a query parameter means, and not that it is a text', () => {
    const list = operations.find(({ path, method }) => path === '/api/apps' && method === 'get')!.operation
    expect(list.parameters).toContainEqual({
      name: 'page',
      in: 'query',
      required: false,
      description: 'Page, starting at 1.',
      schema: { type: 'integer', minimum: 1, default: 1 },
    })
    const status = list.parameters!.find((parameter) => parameter.name === 'status')
    expect(status).toMatchObject({ style: 'form', explode: true })
    expect(status.schema.oneOf[0].enum).toContain('running')
    expect(status.schema.oneOf[1]).toMatchObject({ type: 'array', items: status.schema.oneOf[0] })
  })
  it('shares schemas by name', () => {
    const create = operations.find(({ path, method }) => path === '/api/apps' && method === 'post')!.operation
    expect(create.responses['201'].content['application/json'].schema.properties.data).toEqual({
      description: 'The app.',
      $ref: '#/components/schemas/App',
    })
    expect(document.components.schemas.App.properties.name).toBeDefined()
  })
  it('offers cookies with their token only where something changes', () => {
    const security = (path: string, method: string) =>
      operations.find((one) => one.path === path && one.method === method)!.operation.security
    expect(security('/api/apps', 'get')).toEqual([{ bearerAuth: [] }, { apiKey: [] }, { cookie: [] }])
    expect(security('/api/apps', 'post')).toEqual([
      { bearerAuth: [] },
      { apiKey: [] },
      { cookie: [], csrf: [] },
    ])
    expect(security('/api/auth/login', 'post')).toEqual([])
  })
  it('shows nothing of the rows and secrets behind it', () => {
    expect(JSON.stringify(document)).not.toMatch(/secret_hash|password_hash|sealed/)
  })
})

describe('named schemas', () => {
  it('must have a name of their own', () => {
    const one = v.pipe(v.object({ a: v.string() }), v.title('Thing'))
    const other = v.pipe(v.object({ b: v.string() }), v.title('Thing'))
    expect(collectNamed([v.object({ x: one, y: v.array(one) })]).size).toBe(1)
    expect(() => collectNamed([v.object({ x: one, y: v.nullable(v.array(other)) })])).toThrow(
      'Two schemas have the title Thing',
    )
  })
  it('have examples made from what their fields say', () => {
    expect(
      exampleOf(
        {
          type: 'object',
          properties: {
            id: { type: 'string', examples: ['app_1'] },
            n: { type: 'integer', minimum: 5 },
            list: { type: 'array', items: { enum: ['a', 'b'] } },
            maybe: { anyOf: [{ type: 'null' }, { type: 'boolean' }] },
          },
        },
        () => ({}),
      ),
    ).toEqual({ id: 'app_1', n: 5, list: ['a'], maybe: true })
  })
})
