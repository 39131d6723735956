/** A schema of the API's description, as far as forms are drawn from it. */
export interface FormSchema {
  $ref?: string
  type?: string | string[]
  format?: string
  description?: string
  const?: unknown
  default?: unknown
  maxLength?: number
  properties?: Record<string, FormSchema>
  required?: string[]
  anyOf?: FormSchema[]
  oneOf?: FormSchema[]
}
/** One input of a form. */
export interface FormField {
  name: string
  description: string
  type: string
  secret: boolean
  /** Wants several lines. */
  long: boolean
  required: boolean
}
type Schemas = Record<string, FormSchema>

const LONG = 2000

function resolve(schema: FormSchema | undefined, schemas: Schemas): FormSchema | undefined {
  const name = schema?.$ref?.split('/').at(-1)
  return name ? schemas[name] : schema
}

/** All choices of a schema, however deep they are nested. */
function choicesOf(schema: FormSchema | undefined, schemas: Schemas): FormSchema[] {
  const known = resolve(schema, schemas)
  if (!known) return []
  const inner = [...(known.anyOf ?? []), ...(known.oneOf ?? [])]
  return inner.length === 0 ? [known] : inner.flatMap((one) => choicesOf(one, schemas))
}

/**
 * Fields of `config` of the choice whose `property` is `value`: the API says what a provider needs, so that a
 * new one needs no page.
 */
export function configFields(schemas: Schemas, name: string, property: string, value: string): FormField[] {
  const choice = choicesOf(schemas[name], schemas).find(
    ({ properties }) => resolve(properties?.[property], schemas)?.const === value,
  )
  const config = resolve(choice?.properties?.config, schemas)
  return Object.entries(config?.properties ?? {}).map(([field, given]) => {
    const known = choicesOf(given, schemas).find(({ type }) => type !== 'null') ?? given
    const type = Array.isArray(known.type) ? known.type.find((one) => one !== 'null') : known.type
    return {
      name: field,
      description: given.description ?? known.description ?? '',
      type: type ?? 'string',
      secret: known.format === 'password',
      long: (known.maxLength ?? 0) > LONG,
      required: (config?.required ?? []).includes(field) && known.default === undefined,
    }
  })
}

/** What was typed, as the API wants it; empty fields are left out. */
export function typedConfig(
  fields: readonly FormField[],
  texts: Record<string, string>,
): Record<string, unknown> {
  const given = fields.filter(({ name }) => (texts[name] ?? '') !== '')
  return Object.fromEntries(
    given.map(({ name, type }) => {
      const text = texts[name]!
      if (type === 'integer' || type === 'number') return [name, Number(text)]
      return [name, type === 'boolean' ? text === 'true' : text]
    }),
  )
}
