import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readIncoming } from '#server/realtime/incoming'
import { createTestApi, type TestApi } from '#test/support/api'
import { faultsOfEvents } from '#test/support/event-payloads'
import { makeResources } from '#test/support/resources'
import { ROOT } from '#test/support/routes'

let api: TestApi
let document: any
beforeAll(async () => {
  api = await createTestApi({ jobs: false })
  document = (await api.as('viewer').get('/api/asyncapi.json')).body
})
afterAll(() => api.close())
/** Both documents are made at the first request; a slow machine takes its time over them. */
const SLOW_MS = 90_000

/** Every `$ref` of a value. */
function refsOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => (key === '$ref' ? [inner as string] : refsOf(inner)))
}
const at = (ref: string): unknown =>
  ref
    .slice(2)
    .split('/')
    .reduce<any>((found, key) => found?.[key], document)

describe('the AsyncAPI document', () => {
  it('is version 3 and has every channel that is declared, at the one address', () => {
    expect(document.asyncapi).toBe('3.0.0')
    const titles = Object.values<any>(document.channels).map(({ title }) => title)
    expect(titles).toEqual(
      expect.arrayContaining([
        'apps/:id',
        'apps/:id/logs',
        'deployments/:id',
        'projects',
        'projects/:id',
        'system',
      ]),
    )
    expect(new Set(Object.values<any>(document.channels).map(({ address }) => address))).toEqual(
      new Set(['/api/ws']),
    )
  })
  it('names nothing that it does not hold, and types every message', () => {
    const refs = refsOf(document)
    expect(refs.length).toBeGreaterThan(20)
    expect(refs.filter((ref) => at(ref) === undefined)).toEqual([])
    for (const { payload } of Object.values<any>(document.components.messages))
      expect(payload).toMatchObject({ type: 'object', required: expect.arrayContaining(['type']) })
  })
  it('says what clients send from the schema that reads it', () => {
    expect(document.components.messages.subscribe.payload.properties).toHaveProperty('after')
    expect(Object.keys(document.components.messages)).toEqual(
      expect.arrayContaining([
        'subscribe',
        'unsubscribe',
        'input',
        'resize',
        'ping',
        'event',
        'log',
        'error',
      ]),
    )
  })
})

describe('what a message holds', () => {
  it('is told for each type of event, and the event of one type is checked by its schema alone', () => {
    const { oneOf, properties } = document.components.messages.event.payload
    expect(oneOf).toHaveLength(properties.type.enum.length)
    for (const type of properties.type.enum) {
      const schema = document.components.schemas[type]
      expect(schema, type).toMatchObject({ type: 'object', additionalProperties: false })
      for (const [name, field] of Object.entries<any>(schema.properties))
        expect(field.description ?? field.anyOf?.[0].description, `${type} ${name}`).toMatch(/\.$/)
    }
    expect(document.components.schemas['deployment.step'].required).toEqual(
      expect.arrayContaining(['deployment_id', 'step', 'step_status']),
    )
  })
  it(
    'is one shape for a line of any log, the same as over REST',
    async () => {
      const { body } = await api.as('viewer').get('/api/openapi.json')
      const { LogLine } = body.components.schemas
      expect(Object.keys(document.components.schemas.LogLine.properties)).toEqual(
        Object.keys(LogLine.properties),
      )
      const answers = ['/api/apps/{id}/logs', '/api/deployments/{id}/logs', '/api/databases/{id}/logs'].map(
        (path) => JSON.stringify(body.paths[path].get.responses['200']),
      )
      for (const answer of answers) expect(answer).toContain('#/components/schemas/LogLine')
    },
    SLOW_MS,
  )
})

describe('types of events', () => {
  it(
    'are enumerated: whatever the code appends, and whatever happens when everything is made, with what it holds',
    async () => {
      await makeResources(api, 'admin', { project_id: api.services.http.default_project(), mark: 'listed' })
      const happened = api.events().map(({ type }) => type)
      const written = readdirSync(join(ROOT, 'server'), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts'))
        .flatMap((name) => readFileSync(join(ROOT, 'server', name), 'utf8').split('\n'))
        .filter((line) => /\b(append|note|tell)\(/.test(line))
        .flatMap((line) => [...line.matchAll(/'([a-z_]+\.[a-z_]+)'/g)].map((match) => match[1]!))
      const { enum: listed } = document.components.messages.event.payload.properties.type
      // Lines of the audit trail look alike; those of projects and members are called nearly as
      // their events. What is told of members is in test/identity/told.test.ts.
      const subjects = new Set(listed.map((type: string) => type.split('.')[0]))
      const told = written.filter(
        (type) => !/^(project|member)\./.test(type) && subjects.has(type.split('.')[0]),
      )
      expect(new Set(happened).size).toBeGreaterThan(10)
      expect(new Set(told).size).toBeGreaterThan(20)
      expect([...new Set([...happened, ...told])].filter((type) => !listed.includes(type))).toEqual([])
      expect(faultsOfEvents(api.events())).toEqual([])
    },
    SLOW_MS,
  )
})

describe('a message that cannot be read', () => {
  it.each([
    ['{"type":"subscribe"}', 'channel: is missing.'],
    ['{"type":"subscribe","channel":7}', 'channel: must be a text.'],
    ['{"type":"input","channel":"system","data":"my password"}', 'data: must be an object.'],
    ['{"type":"ping","cols":80}', 'cols: is not a field of this request.'],
    [
      '{"type":"resize","channel":"system","data":{"cols":{"toString":1},"rows":1}}',
      'data.cols: must be a number.',
    ],
    ['{"channel":"system"}', 'type: is missing.'],
    ['nothing', 'The message is no JSON.'],
  ])('%s: the refusal names what it lacks', (text, sentence) => {
    const answer = readIncoming(text)
    expect(answer).toEqual({ fault: expect.stringContaining(sentence) })
    expect(JSON.stringify(answer)).not.toContain('my password')
  })
})
