import { describe, expect, it } from 'vitest'
import { addressOf, curlOf, typescriptOf } from '../../dashboard/src/features/explorer/call.ts'
import { fieldsOf, type OpenApi, operationsOf } from '../../dashboard/src/features/explorer/document.ts'

const document: OpenApi = {
  info: { title: 'Portreeve', version: '1' },
  components: {
    schemas: {
      App: {
        type: 'object',
        required: ['name'],
        properties: {
          name: { type: 'string', maxLength: 63, description: 'DNS label.', examples: ['shop'] },
          limits: { $ref: '#/components/schemas/Limits' },
        },
      },
      Limits: { type: 'object', properties: { cpus: { type: 'number', minimum: 0.01 } } },
    },
    responses: { NOT_FOUND: { description: 'NOT_FOUND' } },
  },
  paths: {
    '/api/apps/{id}': {
      put: {
        summary: 'Change an app',
        tags: ['apps'],
        parameters: [
          { name: 'id', in: 'path', required: true },
          { name: 'dry', in: 'query' },
        ],
        requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/App' } } } },
        responses: { 200: { description: 'Changed.' }, 404: { $ref: '#/components/responses/NOT_FOUND' } },
      },
    },
  },
}
const [operation] = operationsOf(document)

describe('an operation in the explorer', () => {
  it('shows its fields with limits and examples, nested ones by their path', () => {
    expect(fieldsOf(document, operation!.body?.schema)).toEqual([
      {
        path: 'name',
        type: 'string',
        required: true,
        description: 'DNS label. at most 63 characters',
        example: '"shop"',
      },
      { path: 'limits', type: 'object', required: false, description: '' },
      { path: 'limits.cpus', type: 'number', required: false, description: 'at least 0.01' },
    ])
  })
  it('tells the errors that it can answer', () => {
    expect(operation!.answers.map(({ status, description }) => [status, description])).toEqual([
      ['200', 'Changed.'],
      ['404', 'NOT_FOUND'],
    ])
  })
  it('becomes a call that is safe to paste, whatever was typed, and holds no secret', () => {
    const given = { values: { id: "app_1'; rm -rf /", dry: 'a&b' }, body: `{"name":"it's"}` }
    expect(addressOf(operation!, given)).toBe("/api/apps/app_1'%3B%20rm%20-rf%20%2F?dry=a%26b")
    expect(curlOf(operation!, given, 'http://x')).toBe(
      [
        `curl -X PUT 'http://x/api/apps/app_1'\\''%3B%20rm%20-rf%20%2F?dry=a%26b'`,
        `-H "X-API-Key: $PORTREEVE_API_KEY"`,
        `-H 'Content-Type: application/json'`,
        `-d '{"name":"it'\\''s"}'`,
      ].join(' \\\n  '),
    )
    expect(typescriptOf(operation!, { values: { id: 'app_1' }, body: '{ "name": "shop" }' })).toBe(
      `const { data, error } = await client.PUT('/api/apps/{id}', { params: { path: { id: "app_1" } }, body: { "name": "shop" } })`,
    )
  })
})
