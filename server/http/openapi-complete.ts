import { isWhole, meaningOf } from './openapi-fields.ts'

/** A JSON Schema (2020-12), as OpenAPI 3.1 takes it. */
export type JsonSchema = { [key: string]: any }

const isObject = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Says of a field what its name says everywhere, where its schema is silent. */
function completeField(name: string, schema: JsonSchema): JsonSchema {
  const meaning = meaningOf(name)
  const described =
    typeof schema.description === 'string' ||
    schema.$ref !== undefined ||
    hasOwnWord(schema) ||
    meaning === undefined
      ? schema
      : { description: meaning, ...schema }
  if (MOMENT.test(name)) return asMoment(described)
  return isWhole(name) ? asWhole(described) : described
}
/** One that may be null says it in the part that is not. */
const hasOwnWord = (schema: JsonSchema): boolean =>
  Array.isArray(schema.anyOf) && schema.anyOf.some((one: JsonSchema) => typeof one.description === 'string')

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
