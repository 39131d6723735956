import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { configFields, type FormSchema, typedConfig } from '../../dashboard/src/lib/schema-fields.ts'
import { createTestApi, type TestApi } from '#test/support/api'

let api: TestApi
let schemas: Record<string, FormSchema>
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
  schemas = (await api.request('GET', '/api/openapi.json', { as: 'viewer' })).body.components.schemas
})
afterAll(() => api.close())

describe('forms that are drawn from the description of the API', () => {
  it.each(['generic', 'slack', 'discord', 'telegram', 'ntfy', 'email'])('know what %s needs', (name) => {
    const fields = configFields(schemas, 'NewWebhook', 'provider', name)
    expect(fields.length).toBeGreaterThan(0)
    for (const field of fields) expect(field.description.length, field.name).toBeGreaterThan(5)
  })
  it.each(['local', 's3', 'sftp'])('know what the destination %s needs', (kind) => {
    expect(configFields(schemas, 'NewStorageProvider', 'kind', kind).length).toBeGreaterThan(0)
  })
  it('hide secrets and tell what is required', () => {
    expect(configFields(schemas, 'NewWebhook', 'provider', 'telegram')).toMatchObject([
      { name: 'bot_token', secret: true, required: true },
      { name: 'chat_id', secret: false, required: true },
    ])
  })
  it('send numbers as numbers, and nothing for an empty field', () => {
    const field = { description: '', secret: false, long: false, required: false }
    const fields = [
      { ...field, name: 'port', type: 'integer' },
      { ...field, name: 'host', type: 'string' },
      { ...field, name: 'path', type: 'string' },
    ]
    expect(typedConfig(fields, { port: '22', host: '5', path: '' })).toEqual({ port: 22, host: '5' })
  })
})
