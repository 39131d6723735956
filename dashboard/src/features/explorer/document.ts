/** Parts of our own OpenAPI document, as far as the explorer shows them. */
export interface Schema {
  $ref?: string
  type?: string | string[]
  title?: string
  description?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  oneOf?: Schema[]
  examples?: unknown[]
  default?: unknown
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  pattern?: string
}
export interface Parameter {
  $ref?: string
  name: string
  in: string
  required?: boolean
  description?: string
  schema?: Schema
}
interface Media {
  schema?: Schema
  example?: unknown
}
interface Described {
  $ref?: string
  description?: string
  content?: Record<string, Media>
}
export interface RawOperation {
  summary?: string
  description?: string
  tags?: string[]
  parameters?: Parameter[]
  requestBody?: Described
  responses?: Record<string, Described>
}
export interface OpenApi {
  info: { title: string; version: string; description?: string }
  paths: Record<string, Record<string, RawOperation>>
  components: {
    schemas?: Record<string, Schema>
    parameters?: Record<string, Parameter>
    responses?: Record<string, Described>
  }
  tags?: { name: string; description?: string }[]
}
/** One operation with all that its page shows. */
export interface Operation {
  id: string
  method: string
  path: string
  tag: string
  summary: string
  description: string
  parameters: Parameter[]
  body?: Media
  answers: { status: string; description: string; schema?: Schema }[]
}

/** What a reference stands for. */
export function deref<T extends { $ref?: string }>(document: OpenApi, value: T | undefined): T | undefined {
  if (!value?.$ref) return value
  const [, , kind = '', name = ''] = value.$ref.split('/')
  const group = document.components[kind as keyof OpenApi['components']] as
    | Record<string, unknown>
    | undefined
  return group?.[name] as T | undefined
}

/** Every operation, in the order of its group and path. */
export function operationsOf(document: OpenApi): Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, raw]) => ({
      id: `${method}-${path.replaceAll(/[^a-z0-9]+/gi, '-')}`,
      method: method.toUpperCase(),
      path,
      tag: raw.tags?.[0] ?? 'other',
      summary: raw.summary ?? path,
      description: raw.description ?? '',
      parameters: (raw.parameters ?? []).map((one) => deref(document, one)!).filter(Boolean),
      body: deref(document, raw.requestBody)?.content?.['application/json'],
      answers: Object.entries(raw.responses ?? {}).map(([status, answer]) => {
        const known = deref(document, answer)
        return {
          status,
          description: known?.description ?? '',
          schema: known?.content?.['application/json']?.schema,
        }
      }),
    })),
  )
}

/** One field of a schema, flattened for reading. */
export interface Field {
  path: string
  type: string
  required: boolean
  description: string
  example?: string
}
const DEEPEST = 3

function typeOf(document: OpenApi, schema: Schema | undefined): string {
  const known = deref(document, schema)
  if (!known) return 'any'
  if (known.enum) return known.enum.map((one) => JSON.stringify(one)).join(' | ')
  if (known.const !== undefined) return JSON.stringify(known.const)
  const choices = known.anyOf ?? known.oneOf
  if (choices) return [...new Set(choices.map((one) => typeOf(document, one)))].join(' | ')
  if (known.type === 'array') return `${typeOf(document, known.items)}[]`
  return [known.type ?? 'any'].flat().join(' | ')
}

/** The fields of a schema with their limits and examples; nested ones carry a dotted path. */
export function fieldsOf(document: OpenApi, schema: Schema | undefined, prefix = '', depth = 0): Field[] {
  const known = deref(document, schema)
  const objects = known?.anyOf ?? known?.oneOf ?? (known ? [known] : [])
  return objects.flatMap((one) => {
    const object = deref(document, one)
    const inner = object?.type === 'array' ? deref(document, object.items) : object
    return Object.entries(inner?.properties ?? {}).flatMap(([name, raw]) => {
      const field = deref(document, raw)
      const path = prefix + name
      const limits = [
        field?.minimum !== undefined && `at least ${field.minimum}`,
        field?.maximum !== undefined && `at most ${field.maximum}`,
        field?.maxLength !== undefined && `at most ${field.maxLength} characters`,
        field?.default !== undefined && `default ${JSON.stringify(field.default)}`,
      ].filter(Boolean)
      const example = field?.examples?.[0]
      const own: Field = {
        path,
        type: typeOf(document, raw),
        required: inner?.required?.includes(name) ?? false,
        description: [field?.description ?? '', limits.join(', ')].filter(Boolean).join(' '),
        ...(example === undefined ? {} : { example: JSON.stringify(example) }),
      }
      return [own, ...(depth < DEEPEST ? fieldsOf(document, raw, `${path}.`, depth + 1) : [])]
    })
  })
}
