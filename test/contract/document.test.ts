import { beforeAll, describe, expect, it } from 'vitest'
import { isWhole } from '#server/http/openapi-fields'
import { buildDocument } from '#server/http/openapi'
import { tagsOf } from '#server/kernel/compose'
import { MODULES } from '#server/modules'
import { readDefinitions } from '#test/support/routes'

interface Field {
  /** Where it is, for the sentence of a failure. */
  at: string
  name: string
  schema: any
}
let document: any
let fields: Field[]
let operations: { at: string; operation: any }[]

/** The parts of a schema that may be null. */
const partsOf = (schema: any): any[] => [schema, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]

function fieldsOf(schema: any, at: string, found: Field[]): void {
  if (typeof schema !== 'object' || schema === null) return
  for (const [name, field] of Object.entries<any>(schema.properties ?? {})) {
    found.push({ at: `${at}.${name}`, name, schema: field })
    fieldsOf(field, `${at}.${name}`, found)
  }
  const inner = [schema.items, schema.additionalProperties]
  for (const one of [...inner, ...(schema.anyOf ?? []), ...(schema.allOf ?? []), ...(schema.oneOf ?? [])])
    fieldsOf(one, at, found)
}
beforeAll(async () => {
  document = buildDocument(await readDefinitions(), { version: '0.0.0', tags: tagsOf(MODULES) })
  operations = Object.entries<any>(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      at: `${method.toUpperCase()} ${path}`,
      operation,
    })),
  )
  fields = []
  for (const [name, schema] of Object.entries(document.components.schemas)) fieldsOf(schema, name, fields)
  for (const { at, operation } of operations) {
    fieldsOf(operation.requestBody?.content?.['application/json']?.schema, `${at} body`, fields)
    for (const response of Object.values<any>(operation.responses))
      fieldsOf(response.content?.['application/json']?.schema, at, fields)
  }
})

describe('the OpenAPI document', () => {
  it('describes every field: in its schema, or in server/http/openapi-fields.ts where the name says it all', () => {
    const silent = fields.filter(({ schema }) => !schema.description)
    expect(silent.map(({ at }) => at)).toEqual([])
  })
  it('types moments, counts and sizes', () => {
    const moments = fields.filter(
      ({ name, schema }) =>
        /(^at|_at)$/.test(name) &&
        partsOf(schema).some(({ type }) => type === 'string') &&
        !JSON.stringify(schema).includes('"date-time"'),
    )
    expect(moments.map(({ at }) => at)).toEqual([])
    const counts = fields.filter(
      ({ name, schema }) =>
        isWhole(name) && partsOf(schema).some(({ type, $ref }) => type === 'number' && $ref === undefined),
    )
    expect(counts.map(({ at }) => at)).toEqual([])
  })
  it('says the maximum of per_page, and that an upload is binary', () => {
    const pages = operations
      .flatMap(({ operation }) => operation.parameters ?? [])
      .filter(({ name }) => name === 'per_page')
    expect(pages.length).toBeGreaterThan(10)
    for (const { schema } of pages) expect(schema).toMatchObject({ type: 'integer', maximum: 100 })
    const uploads = operations.flatMap(({ operation }) =>
      Object.entries<any>(operation.requestBody?.content ?? {}).filter(
        ([type]) => type !== 'application/json',
      ),
    )
    expect(uploads.length).toBeGreaterThan(0)
    for (const [, { schema }] of uploads) expect(schema).toMatchObject({ type: 'string', format: 'binary' })
  })
  it('names every resource, and the error that all failures hold', () => {
    const unnamed = operations.flatMap(({ at, operation }) =>
      Object.entries<any>(operation.responses).flatMap(([status, response]) => {
        const schema = response.content?.['application/json']?.schema
        if (!schema) return []
        if (status[0] !== '2')
          return schema.allOf?.[0]?.$ref === '#/components/schemas/Error' ? [] : [`${at} ${status}`]
        const data = schema.properties?.data
        const held = data?.type === 'array' ? data.items : data
        return held?.properties && !held.$ref ? [at] : []
      }),
    )
    expect(unnamed).toEqual([])
  })
  it('names every operation as a person would, once', () => {
    const ids = operations.map(({ operation }) => operation.operationId as string)
    expect(ids.filter((id, at) => ids.indexOf(id) !== at)).toEqual([])
    expect(ids.filter((id) => !/^[a-z]+([A-Z][a-z0-9]*)*$/.test(id) || /By[A-Z]/.test(id))).toEqual([])
    expect(ids).toEqual(
      expect.arrayContaining(['listApps', 'createApp', 'deployApp', 'removeProjectMember', 'rollbackApp']),
    )
  })
  it('gives every success a sentence of its own, and an example of values as they come', () => {
    const successes = operations.flatMap(({ at, operation }) =>
      Object.entries<any>(operation.responses)
        .filter(([status]) => status[0] === '2')
        .map(([, { description, content }]) => ({ at, description, content })),
    )
    const sentences = successes.map(({ description }) => description as string)
    expect(sentences.filter((one) => !/^[A-Z].{20,}\.$/.test(one))).toEqual([])
    expect(sentences.filter((one, at) => sentences.indexOf(one) !== at)).toEqual([])
    const made_up = successes.filter(({ content }) =>
      /:"text"/.test(JSON.stringify(content?.['application/json']?.example ?? null)),
    )
    expect(made_up.map(({ at }) => at)).toEqual([])
  })
})
