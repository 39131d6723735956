import { vi } from 'vitest'

type Schema = { [key: string]: any }
interface Document {
  paths: Record<string, Record<string, Schema>>
  components?: { schemas?: Record<string, Schema> }
}

/**
 * A field of the API that holds a secret: its operation, the side that sends it, and where it is, such as
 * `data.recovery_codes[]`.
 */
export interface SecretField {
  operation: string
  side: 'body' | 'answer'
  path: string
}
/** A field of the API with a text in it. */
export interface TextField extends SecretField {
  schema: Schema
}
export const nameOf = ({ operation, side, path }: SecretField): string => `${operation} ${side} ${path}`

/** Every text of every body and successful answer that the API describes. */
export function textFields(document: Document): TextField[] {
  const fields: TextField[] = []
  const visit = (schema: Schema | undefined, field: SecretField, open: readonly string[]): void => {
    if (!schema) return
    if (typeof schema.$ref === 'string') {
      const name = schema.$ref.split('/').at(-1)!
      if (!open.includes(name)) visit(document.components?.schemas?.[name], field, [...open, name])
      return
    }
    for (const choice of [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])])
      visit(choice, field, open)
    for (const [key, inner] of Object.entries<Schema>(schema.properties ?? {}))
      visit(inner, { ...field, path: field.path ? `${field.path}.${key}` : key }, open)
    if (typeof schema.additionalProperties === 'object')
      visit(schema.additionalProperties, { ...field, path: `${field.path}{}` }, open)
    if (schema.items) visit(schema.items, { ...field, path: `${field.path}[]` }, open)
    if (schema.type === 'string') fields.push({ ...field, schema })
  }
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, { requestBody, responses }] of Object.entries(methods)) {
      const operation = `${method.toUpperCase()} ${path}`
      visit(requestBody?.content?.['application/json']?.schema, { operation, side: 'body', path: '' }, [])
      for (const [status, response] of Object.entries<Schema>(responses ?? {})) {
        if (status.startsWith('2'))
          visit(response.content?.['application/json']?.schema, { operation, side: 'answer', path: '' }, [])
      }
    }
  }
  return fields
}

/** What answers show instead of a secret that is set. */
const MASK = '********'
/** The fields that are marked as secrets, but for those of answers that only ever show the mask. */
export const secretFields = (document: Document): SecretField[] =>
  textFields(document)
    .filter(
      ({ schema, side }) =>
        schema.format === 'password' && !(side === 'answer' && schema.examples?.includes(MASK)),
    )
    .map(({ operation, side, path }) => ({ operation, side, path }))
    // A field that several choices of a body have is one field.
    .filter((field, at, all) => all.findIndex((one) => nameOf(one) === nameOf(field)) === at)

/** What lies under one part of a path: `items[]` is each of a list, `headers{}` each of a record. */
function membersAt(value: unknown, key: string): unknown[] {
  const inner = (value as Record<string, unknown> | null | undefined)?.[key.replace(/\[\]$|\{\}$/, '')]
  if (key.endsWith('[]')) return Array.isArray(inner) ? inner : []
  return key.endsWith('{}') ? Object.values(inner ?? {}) : [inner]
}

function valuesAt(value: unknown, path: string): string[] {
  const [key = '', ...rest] = path.split('.')
  const found = membersAt(value, key)
  return rest.length > 0
    ? found.flatMap((one) => valuesAt(one, rest.join('.')))
    : found.filter((one): one is string => typeof one === 'string')
}

/** One call that was made, and how it ended. */
export interface Call {
  method: string
  path: string
  status: number
  body: unknown
  answer: unknown
}
const json = (text: unknown): unknown => {
  try {
    return typeof text === 'string' ? JSON.parse(text) : undefined
  } catch {
    return undefined
  }
}

/** Hears every call of this test until `stop`. */
export function overhearCalls(): { calls: Call[]; stop(): void } {
  const calls: Call[] = []
  const real = globalThis.fetch
  const spy = vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const response = await real(input, init)
    calls.push({
      method: init?.method ?? 'GET',
      path: new URL(String(input)).pathname,
      status: response.status,
      body: json(init?.body),
      answer: json(await response.clone().text()),
    })
    return response
  })
  return { calls, stop: () => spy.mockRestore() }
}

/** What the calls had in a field: all of it, or what was taken and not refused. */
export function sentIn(
  calls: readonly Call[],
  { operation, side, path }: SecretField,
  only_taken = false,
): string[] {
  const [method, template = ''] = operation.split(' ')
  const pattern = new RegExp(`^${template.replace(/\{\w+\}/g, '[^/]+')}$`)
  return calls
    .filter((call) => call.method === method && pattern.test(call.path) && (!only_taken || call.status < 300))
    .flatMap((call) => valuesAt(side === 'body' ? call.body : call.answer, path))
}

/** The part of a value that must stay secret: the head of a token and the id of a key are no secrets. */
export function essenceOf(value: string): string {
  if (/^[\w-]+\.[\w-]+\.[\w-]+$/.test(value) && value.startsWith('eyJ')) return value.split('.')[2]!
  return /^ptr_/.test(value) ? value.split('_').slice(2).join('_') : value
}
