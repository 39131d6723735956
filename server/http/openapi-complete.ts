import { isWhole, meaningOf } from './openapi-fields.ts'

/** A JSON Schema (2020-12), as OpenAPI 3.1 takes it. */
export type JsonSchema = { [key: string]: any }

const isObject = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Says of a field what its name says everywhere, where its schema is silent. */
function completeField(name: string, schema: JsonSchema): JsonSchema {
  const meaning = meaningOf(name)
  const own = withOwnWord(schema)
  const described =
    typeof own.description === 'string' || own.$ref !== undefined || meaning === undefined
      ? own
      : { description: meaning, ...own }
  if (MOMENT.test(name)) return asMoment(described)
  return isWhole(name) ? asWhole(described) : described
}
/** What the one described part of a field says, which is mostly one that may be null, is said of the field. */
function withOwnWord(schema: JsonSchema): JsonSchema {
  if (typeof schema.description === 'string' || !Array.isArray(schema.anyOf)) return schema
  const words = schema.anyOf.map((part: JsonSchema) => part.description).filter(Boolean)
  if (new Set(words).size !== 1) return schema
  const anyOf = schema.anyOf.map(({ description: _, ...part }: JsonSchema) => part)
  return { description: words[0], ...schema, anyOf }
}

const MOMENT = /(^at|_at)$/
/** Every moment is told in one way. */
function asMoment(schema: JsonSchema): JsonSchema {
  if (Array.isArray(schema.anyOf)) return { ...schema, anyOf: schema.anyOf.map(asMoment) }
  return schema.type === 'string' ? { ...schema, format: 'date-time' } : schema
}

/** Bytes, ports and counts have no fraction. */
function asWhole(schema: JsonSchema): JsonSchema {
  if (Array.isArray(schema.anyOf)) return { ...schema, anyOf: schema.anyOf.map(asWhole) }
  return schema.type === 'number' ? { ...schema, type: 'integer' } : schema
}

/** Completes every field of a schema, at any depth. */
export function complete(schema: unknown): any {
  if (Array.isArray(schema)) return schema.map(complete)
  if (!isObject(schema)) return schema
  return Object.fromEntries(
    Object.entries(schema).map(([key, inner]) => {
      if (key === 'examples' || key === 'default' || key === 'enum') return [key, inner]
      if (key !== 'properties' || !isObject(inner)) return [key, complete(inner)]
      return [
        key,
        Object.fromEntries(
          Object.entries(inner).map(([name, field]) => [name, completeField(name, complete(field))]),
        ),
      ]
    }),
  )
}
