import { own } from '#server/kernel/own'
import { toJsonSchema } from '@valibot/to-json-schema'
import type * as v from 'valibot'
import { complete, type JsonSchema } from './openapi-complete.ts'

export type { JsonSchema } from './openapi-complete.ts'
/** Which side of a schema is meant: what a client sends, or what it gets. */
export type Side = 'input' | 'output'

type Node = v.GenericSchema & {
  pipe?: readonly (Node | { type: string; title?: string })[]
  wrapped?: Node
  item?: Node
  items?: Node[]
  options?: unknown[]
  entries?: Record<string, Node>
  key?: Node
  value?: Node
  rest?: Node
}
const isSchema = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && (value as { kind?: unknown }).kind === 'schema'
/** The title that the schema itself carries; one of a schema inside its pipe does not count. */
const titleOf = (schema: Node) =>
  schema.pipe?.findLast(
    (item): item is { type: 'title'; title: string } => !isSchema(item) && item.type === 'title',
  )?.title

function children(schema: Node): Node[] {
  const { pipe = [], wrapped, item, items = [], options = [], entries = {}, key, value, rest } = schema
  // A piped schema repeats itself as the first item of its pipe.
  return [...pipe, wrapped, item, ...items, ...options, ...Object.values(entries), key, value, rest].filter(
    isSchema,
  )
}

/** Every schema with a title that is reachable from `roots`, by its title. */
export function collectNamed(roots: Iterable<v.GenericSchema>): Map<string, v.GenericSchema> {
  const named = new Map<string, v.GenericSchema>()
  const seen = new Set<Node>()
  const visit = (schema: Node) => {
    if (seen.has(schema)) return
    seen.add(schema)
    const title = titleOf(schema)
    if (title !== undefined) {
      const known = named.get(title)
      if (known && known !== schema)
        throw new Error(
          `Two schemas have the title ${title}. Give one of them another, or export one and use it twice.`,
        )
      named.set(title, schema)
    }
    for (const child of children(schema)) visit(child)
  }
  for (const root of roots) visit(root as Node)
  return named
}

const PREFIX = '#/components/schemas/'
/** Names of schemas that a JSON Schema refers to. */
export function refsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) =>
    key === '$ref' && typeof inner === 'string' && inner.startsWith(PREFIX)
      ? [inner.slice(PREFIX.length)]
      : refsIn(inner),
  )
}

/** Converts schemas of endpoints, with a `$ref` for every named one. */
export interface SchemaConverter {
  convert(schema: v.GenericSchema, side: Side): JsonSchema
  /** The components that `used` names refer to, directly or through each other. */
  components(used: Iterable<string>): Record<string, JsonSchema>
}

function convertOne(
  schema: v.GenericSchema,
  side: Side,
  nameOf: (name: string) => string,
  inline: boolean,
): JsonSchema {
  // Only what the schema reaches: the library converts every definition that it is given.
  const definitions = Object.fromEntries(collectNamed([schema]))
  const converted: JsonSchema = toJsonSchema(schema, {
    typeMode: side,
    errorMode: 'ignore',
    target: 'draft-2020-12',
    definitions,
    overrideRef: ({ referenceId }) => `${PREFIX}${nameOf(referenceId)}`,
  })
  const title = inline ? titleOf(schema as Node) : undefined
  const body = title === undefined ? converted : (own(converted.$defs, title) as JsonSchema)
  const { $schema: _dialect, $defs: _definitions, ...rest } = body
  return complete(tidy(rest))
}

/**
 * Remembers by object and side: schemas are shared by many endpoints, and a conversion walks all that they
 * reach.
 */
function remembered<K extends object | string, T>(
  make: (key: K, side: Side) => T,
): (key: K, side: Side) => T {
  const known = { input: new Map<K, T>(), output: new Map<K, T>() }
  return (key, side) => {
    if (!known[side].has(key)) known[side].set(key, make(key, side))
    return known[side].get(key)!
  }
}

/** `required: []` says nothing, and a choice of one thing is that thing. */
function tidy(value: any): any {
  if (Array.isArray(value)) return value.map(tidy)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(
    ([key, inner]) => !(key === 'required' && Array.isArray(inner) && inner.length === 0),
  )
  return Object.fromEntries(
    entries.map(([key, inner]) => [key, key === 'examples' || key === 'default' ? inner : tidy(inner)]),
  )
}

/**
 * A schema has two sides when defaults or transformations make what is sent differ from what is received.
 * Where they are equal, one component serves both; else the side that clients send is called `<Name>Input`.
 */
export function createSchemaConverter(roots: Iterable<v.GenericSchema>): SchemaConverter {
  const named = collectNamed(roots)
  const plain = (side: Side) =>
    new Map([...named].map(([name, schema]) => [name, convertOne(schema, side, (ref) => ref, true)]))
  const [inputs, outputs] = [plain('input'), plain('output')]
  const split = new Set(
    [...named.keys()].filter(
      (name) => JSON.stringify(inputs.get(name)) !== JSON.stringify(outputs.get(name)),
    ),
  )
  for (let size = -1; size !== split.size; ) {
    size = split.size
    for (const [name, schema] of inputs) if (refsIn(schema).some((ref) => split.has(ref))) split.add(name)
  }
  const nameOf = (side: Side) => (name: string) =>
    side === 'input' && split.has(name) ? `${name}Input` : name
  const component = remembered((name: string, side: Side) =>
    convertOne(named.get(name)!, side, nameOf(side), true),
  )
  const componentOf = (name: string) =>
    named.has(name) ? component(name, 'output') : component(name.replace(/Input$/, ''), 'input')
  return {
    convert: remembered((schema: v.GenericSchema, side) => convertOne(schema, side, nameOf(side), false)),
    components(used) {
      const found: Record<string, JsonSchema> = {}
      const open = [...used]
      for (let name = open.pop(); name !== undefined; name = open.pop()) {
        if (own(found, name)) continue
        found[name] = componentOf(name)
        open.push(...refsIn(own(found, name)))
      }
      return Object.fromEntries(Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1)))
    },
  }
}
