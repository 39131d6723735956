import { inWords } from './openapi-references.ts'
import { own } from '#server/kernel/own'
import * as v from 'valibot'
import type { AnyEndpoint } from './definition.ts'
import { isDescription } from './descriptions.ts'
import { byStatus, errorCodesOf, responseName } from './openapi-errors.ts'
import { operationId } from './openapi-names.ts'
import { exampleOf } from './openapi-examples.ts'
import type { JsonSchema, SchemaConverter } from './openapi-schemas.ts'

/** One endpoint with the place that its file gives it. */
export interface DocumentedEndpoint {
  path: string
  method: string
  definition: AnyEndpoint
}

/** Whether an answer is a list, with pages or without. */
const isList = ({ response }: AnyEndpoint): boolean => {
  const { data } = (response as { entries?: Record<string, { type: string }> } | undefined)?.entries ?? {}
  return data?.type === 'array'
}

/** Whether an answer has a tag by which a client that holds it already is told so; see `reply.ts`. */
const isTagged = (definition: AnyEndpoint, method: string): boolean =>
  method === 'get' && (isList(definition) || isDescription(definition))

/** How a caller proves who they are; a cookie needs its token where something changes. */
function securityOf(definition: AnyEndpoint, method: string): JsonSchema[] {
  if (definition.access === 'public') return []
  return [{ bearerAuth: [] }, { apiKey: [] }, method === 'get' ? { cookie: [] } : { cookie: [], csrf: [] }]
}

const RIGHTS: Record<AnyEndpoint['access'], string> = {
  public: 'Needs no account.',
  self: 'Any authenticated user.',
  viewer: 'Viewers of the project and above.',
  member: 'Any user but a viewer of the installation.',
  developer: 'Developers of the project and above.',
  owner: 'Owners of the project and administrators.',
  admin: 'Administrators only.',
}

/** A parameter that takes one value or several, each as a parameter of its own or all of them with commas. */
const severalValues = (list: JsonSchema): JsonSchema => ({
  style: 'form',
  explode: true,
  schema: { oneOf: [list.items, list] },
})

function parametersOf(
  { path, method, definition }: DocumentedEndpoint,
  schemas: SchemaConverter,
): JsonSchema[] {
  const toParameter = (
    place: 'path' | 'query',
    key: string,
    schema: v.GenericSchema | undefined,
    required: boolean,
  ): JsonSchema => {
    const { description, examples, ...rest } = schema
      ? schemas.convert(schema, 'input')
      : ({ type: 'string' } as JsonSchema)
    return {
      name: key,
      in: place,
      required,
      ...(rest.type === 'array' ? severalValues(rest) : { schema: rest }),
      description:
        description ??
        (place === 'path' ? 'Identifier of the resource.' : `Filter by ${key.replaceAll('_', ' ')}.`),
      ...(Array.isArray(examples) ? { example: examples[0] as unknown } : {}),
    }
  }
  const entriesOf = (schema: unknown) =>
    (schema as { entries?: Record<string, v.GenericSchema> } | undefined)?.entries ?? {}
  const known = entriesOf(definition.params)
  const names = [...path.matchAll(/:(\w+)/g)].map((match) => match[1]!)
  const query = Object.entries(entriesOf(definition.query)).map(([key, schema]) =>
    toParameter('query', key, schema, !['optional', 'nullish', 'exact_optional'].includes(schema.type)),
  )
  const replayable = method === 'post' && !definition.upload && definition.access !== 'public'
  return [
    ...names.map((name) => toParameter('path', name, own(known, name), true)),
    ...query,
    ...(replayable ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : []),
    ...(isTagged(definition, method) ? [{ $ref: '#/components/parameters/IfNoneMatch' }] : []),
  ]
}

function requestBodyOf({ definition }: DocumentedEndpoint, schemas: SchemaConverter): JsonSchema | undefined {
  const { body, upload, example } = definition
  const json = body && {
    'application/json': {
      schema: schemas.convert(body as v.GenericSchema, 'input'),
      ...(example === undefined ? {} : { example: example as unknown }),
    },
  }
  if (upload) {
    const binary = {
      schema: {
        type: 'string',
        format: 'binary',
        description: `At most ${upload.max_bytes} bytes.`,
      },
    }
    return {
      required: true,
      content: { ...json, ...Object.fromEntries(upload.media_types.map((type) => [type, binary])) },
    }
  }
  if (!body) return undefined
  return { required: !v.safeParse(body as v.GenericSchema, {}).success, content: json }
}

/** The answer as a sentence: what was asked for, and what the body holds. */
const sentenceOf = ({ summary, status }: AnyEndpoint, what: string): string =>
  `${summary}: ${status === 201 ? 'made' : 'done'}. The body holds ${what}.`

/** What an envelope holds, in words. */
function whatIs({ properties = {} }: JsonSchema): string {
  const { data = {}, pages } = properties as { data?: JsonSchema; pages?: JsonSchema }
  if (pages) return `one page of the list${data.items?.$ref ? ` (${inWords(data.items.$ref)})` : ''}`
  if (data.type === 'array') return 'all of them'
  return data.$ref ? `the ${inWords(data.$ref)}` : 'the result'
}

/** What an answer that is no typed JSON consists of. */
function schemaOfType(type: string): JsonSchema {
  if (type.startsWith('application/json')) return { type: 'object' }
  return /^(text\/|application\/(yaml|x-ndjson))/.test(type)
    ? { type: 'string' }
    : { type: 'string', format: 'binary' }
}

/** Answers that are no typed JSON, by their media types. */
const contentOf = (types: readonly string[]): JsonSchema =>
  Object.fromEntries(types.map((type) => [type.split(';')[0]!, { schema: schemaOfType(type) }]))

function successOf({ definition, method }: DocumentedEndpoint, schemas: SchemaConverter): JsonSchema {
  const headers = {
    'X-Request-Id': { $ref: '#/components/headers/RequestId' },
    ...(isTagged(definition, method) ? { ETag: { $ref: '#/components/headers/ETag' } } : {}),
  }
  if (!definition.response)
    return {
      description: sentenceOf(definition, 'the text or the bytes'),
      headers,
      content: contentOf(definition.media_types ?? ['application/json']),
    }
  const schema = schemas.convert(definition.response as v.GenericSchema, 'output')
  const example = exampleOf(schema, (name) => own(schemas.components([name]), name)!)
  return {
    description: sentenceOf(definition, whatIs(schema)),
    headers,
    content: { ...contentOf(definition.media_types ?? []), 'application/json': { schema, example } },
  }
}

/** The operation object of one endpoint. */
export function operationOf(endpoint: DocumentedEndpoint, schemas: SchemaConverter, tag: string): JsonSchema {
  const { path, method, definition } = endpoint
  const failures = [...byStatus(errorCodesOf(definition, method))].map(([status, codes]) => [
    String(status),
    { $ref: `#/components/responses/${responseName(codes)}` },
  ])
  const parameters = parametersOf(endpoint, schemas)
  const requestBody = requestBodyOf(endpoint, schemas)
  return {
    operationId: operationId(method, path, isList(definition)),
    summary: definition.summary,
    description: [definition.description, RIGHTS[definition.access]].filter(Boolean).join('\n\n'),
    tags: [tag],
    // The same in one word, for programs: the dashboard makes its table of roles of it.
    'x-access': definition.access,
    security: securityOf(definition, method),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(requestBody ? { requestBody } : {}),
    responses: {
      [String(definition.status ?? 200)]: successOf(endpoint, schemas),
      ...(isTagged(definition, method) ? { 304: { $ref: '#/components/responses/NOT_MODIFIED' } } : {}),
      ...Object.fromEntries(failures),
    },
  }
}
