import { own } from '#server/kernel/own'
import type { JsonSchema } from './openapi-complete.ts'

const isObject = (value: unknown): value is JsonSchema => typeof value === 'object' && value !== null

/** A name of a schema in words: `BackupTarget` is a backup target. */
export const inWords = (ref: unknown): string =>
  String(ref)
    .split('/')
    .at(-1)!
    .replace(/(?<=[a-z])(?=[A-Z])/g, ' ')
    .toLowerCase()

/** The one schema that a field refers to, also where it may be null. */
function referenceOf({ $ref, anyOf }: JsonSchema): string | undefined {
  if (typeof $ref === 'string') return $ref
  const found = (Array.isArray(anyOf) ? (anyOf as JsonSchema[]) : []).flatMap((part) => part.$ref ?? [])
  return found.length === 1 ? (found[0] as string) : undefined
}

/** Says of every field that only names a schema what that schema is, for readers that follow no references. */
export function describeReferences(part: unknown, schemas: Readonly<Record<string, JsonSchema>>): any {
  if (Array.isArray(part)) return part.map((one) => describeReferences(one, schemas))
  if (!isObject(part)) return part
  return Object.fromEntries(
    Object.entries(part).map(([key, inner]) => {
      if (key === 'example' || key === 'examples' || key === 'default' || key === 'enum') return [key, inner]
      const described = describeReferences(inner, schemas)
      if (key !== 'properties' || !isObject(inner)) return [key, described]
      return [key, Object.fromEntries(Object.entries<JsonSchema>(described).map(describeField))]
    }),
  )

  function describeField([name, field]: [string, JsonSchema]): [string, JsonSchema] {
    const reference = referenceOf(field)
    if (reference === undefined || field.description !== undefined) return [name, field]
    const schema = own(schemas, reference.split('/').at(-1)!)
    return [name, { description: schema?.description ?? `The ${inWords(reference)}.`, ...field }]
  }
}
