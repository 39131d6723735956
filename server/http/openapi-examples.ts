import { own } from '#server/kernel/own'
import { valueOf } from './openapi-fields.ts'
import type { JsonSchema } from './openapi-schemas.ts'

const BY_FORMAT: Record<string, unknown> = {
  'date-time': '2026-01-31T12:00:00.000Z',
  email: 'ada@example.com',
  uri: 'https://example.com',
  date: '2026-01-31',
  uuid: '0b8f2a5e-6c1d-4f0e-9a3b-2d7c5e8f1a64',
}

/** Identifiers of what has no schema of its own with an example. */
const ID_OF: readonly [pattern: RegExp, value: string][] = [
  [/^id$|_id$/, 'res_0123456789abcdefghjk'],
  [/_url$/, 'https://example.com/'],
  [/_domain$/, 'apps.example.com'],
  [/_command$/, 'npm run task'],
]
/** The type of a value as a schema names it. */
const typeOf = (value: unknown): string => {
  if (Array.isArray(value)) return 'array'
  return typeof value === 'number' ? 'integer' : typeof value
}

/**
 * An example that fits a schema, from the examples that its parts carry. `resolve` finds what a `$ref` names.
 */
export function exampleOf(schema: JsonSchema, resolve: (name: string) => JsonSchema, field = ''): unknown {
  if (typeof schema.$ref === 'string')
    return exampleOf(resolve(schema.$ref.split('/').at(-1)!), resolve, field)
  if (Array.isArray(schema.examples)) return schema.examples[0]
  if (schema.default !== undefined) return schema.default
  if (schema.const !== undefined) return schema.const
  if (Array.isArray(schema.enum)) return schema.enum[0]
  const choice = (schema.anyOf ?? schema.oneOf) as JsonSchema[] | undefined
  if (choice) return exampleOf(choice.find((one) => one.type !== 'null') ?? choice[0]!, resolve, field)
  if (schema.allOf)
    return Object.assign({}, ...(schema.allOf as JsonSchema[]).map((one) => exampleOf(one, resolve)))
  const known = valueOf(field)
  if (known !== undefined && typeOf(known) === schema.type) return known
  switch (schema.type) {
    case 'object':
      return Object.fromEntries(
        Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).map(([key, inner]) => [
          key,
          exampleOf(inner, resolve, key),
        ]),
      )
    case 'array':
      return schema.items ? [exampleOf(schema.items as JsonSchema, resolve, field)] : []
    case 'integer':
    case 'number':
      return Math.max(schema.minimum ?? 0, schema.maximum === undefined ? 1 : Math.min(1, schema.maximum))
    case 'boolean':
      return true
    case 'string':
      return (
        own(BY_FORMAT, schema.format as string) ??
        ID_OF.find(([pattern]) => pattern.test(field))?.[1] ??
        'as it is'.padEnd(schema.minLength ?? 0, '.').slice(0, schema.maxLength)
      )
    default:
      return null
  }
}
