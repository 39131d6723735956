import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import { expect, it } from 'vitest'
import { parse as parseYaml } from 'yaml'
import type { Feature, Features } from '#server/compose/feature'
import { FEATURES } from '#server/compose/features'
import { ComposeError, parseCompose } from '#server/compose/parse'

/** The specification's own JSON schema, as npm has it. */
const schema = JSON.parse(readFileSync('node_modules/dclint/schemas/compose.schema.json', 'utf8')) as Schema
interface Schema {
  $schema?: string
  $ref?: string
  type?: string | string[]
  oneOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  patternProperties?: Record<string, Schema>
  definitions?: Record<string, Schema>
}

const resolve = (node: Schema | undefined): Schema | undefined =>
  node?.$ref ? resolve(schema.definitions?.[node.$ref.split('/').at(-1)!]) : node
/** Mappings that a value may be: itself, one of several forms, or what a list holds. */
const forms = (node: Schema | undefined): Schema[] => {
  const found = resolve(node)
  if (!found) return []
  return [found, ...(found.oneOf ?? []).flatMap(forms)]
}
const keysOf = (node: Schema | undefined): string[] =>
  forms(node).flatMap(({ properties }) => Object.keys(properties ?? {}))
const propertyOf = (node: Schema | undefined, key: string): Schema | undefined =>
  forms(node).find(({ properties }) => properties && key in properties)?.properties?.[key]
/** What each entry of a list or a mapping with free keys is. */
const entriesOf = (node: Schema | undefined): Schema[] =>
  forms(node).flatMap((form) => [
    ...forms(form.items),
    ...Object.entries(form.patternProperties ?? {}).flatMap(([key, value]) =>
      key === '^x-' ? [] : forms(value),
    ),
  ])

/** Keys that engines take although the schema does not have them yet. */
const AHEAD = new Set(['no_cache_filter', 'provenance', 'sbom'].map((key) => `services.*.build.${key}`))

function compare(node: Schema | undefined, features: Features, path: string, differences: string[]): void {
  const known = new Set(keysOf(node))
  for (const key of known) if (!(key in features)) differences.push(`${path}${key} is missing`)
  for (const key of Object.keys(features))
    if (!known.has(key) && !key.startsWith('x-') && !AHEAD.has(path + key))
      differences.push(`${path}${key} is unknown`)
  for (const [key, feature] of Object.entries(features) as [string, Feature][]) {
    const below = propertyOf(node, key)
    if (feature.inside && !key.startsWith('x-')) compare(below, feature.inside, `${path}${key}.`, differences)
    if (!feature.each) continue
    const entries: Schema = { oneOf: entriesOf(below) }
    compare(entries, feature.each, `${path}${key}.*.`, differences)
  }
}

it('every key of the specification is taken, refused or ignored, and no other is', () => {
  const differences: string[] = []
  compare(schema, FEATURES, '', differences)
  expect(differences).toEqual([])
})

/** Files that ask for nothing refused: the schema and the parser have to agree on each. */
const SAMPLES = [
  'services: {web: {image: a}}',
  'services: {web: {image: 1}}',
  'services: {web: {image: [a]}}',
  'services: {web: {image: a, command: [a, b]}}',
  'services: {web: {image: a, command: {a: b}}}',
  'services: {web: {image: a, environment: {A: 1, B: true, C: null}}}',
  'services: {web: {image: a, environment: {A: {b: c}}}}',
  'services: {web: {image: a, environment: text}}',
  'services: {web: {image: a, ports: [80, "81:81", {target: 82}]}}',
  'services: {web: {image: a, ports: 80}}',
  'services: {web: {image: a, ports: [{target: 82, color: red}]}}',
  'services: {web: {image: a, volumes: ["a:/b"]}}\nvolumes: {a: {}}',
  'services: {web: {image: a, volumes: a}}',
  'services: {web: {image: a, volumes: [{source: a}]}}\nvolumes: {a: {}}',
  'services: {web: {image: a, volumes: [{type: volume, source: a, target: /b, color: red}]}}\nvolumes: {a: {}}',
  'services: {web: {image: a, deploy: {replicas: 2, resources: {limits: {cpus: 0.5, memory: 50M}}}}}',
  'services: {web: {image: a, deploy: {replicas: many}}}',
  'services: {web: {image: a, deploy: [a]}}',
  'services: {web: {image: a, deploy: {resources: {limits: {memory: [1]}}}}}',
  'services: {web: {image: a, healthcheck: {test: a, interval: 3s}}}',
  'services: {web: {image: a, healthcheck: a}}',
  'services: {web: {image: a, healthcheck: {test: a, often: 3s}}}',
  'services: {web: {image: a, healthcheck: {test: a, retries: [1]}}}',
  'services: {web: {image: a, depends_on: [db]}, db: {image: b}}',
  'services: {web: {image: a, depends_on: {db: {condition: service_healthy}}}, db: {image: b}}',
  'services: {web: {image: a, depends_on: {db: {condition: ready}}}, db: {image: b}}',
  'services: {web: {image: a, configs: [c, {source: c, target: /d, mode: 292}]}}\nconfigs: {c: {content: x}}',
  'services: {web: {image: a, configs: c}}\nconfigs: {c: {content: x}}',
  'services: {web: {image: a, stop_grace_period: 1m, user: "1:1", working_dir: /a, read_only: true}}',
  'services: {web: {image: a, read_only: perhaps, privileged: [1]}}',
  'services: {web: {image: a, networks: {n: {aliases: [b]}}}}\nnetworks: {n: {}}',
  'services: {web: {image: a, networks: {n: {aliases: b}}}}\nnetworks: {n: {}}',
  'services: [a]',
  'services: {web: [a]}',
  'services: {web: {image: a}}\nvolumes: [a]',
  'services: {web: {image: a}}\ncolour: red',
  'services: {web: {image: a, x-y: 1}}\nx-z: [1]',
]
/** Where the parser is stricter or more lenient than the schema, and why. */
const LENIENT = new Set([
  'services: {web: {image: 1}}',
  'services: {web: {image: a, networks: {n: {aliases: b}}}}\nnetworks: {n: {}}',
])
/** The schema takes any text for these, since it is read before variables are replaced. */
const STRICTER = new Set(['services: {web: {image: a, deploy: {replicas: many}}}'])

const { $schema: _newer, ...plain } = schema
const validate = new Ajv({ strict: false, validateFormats: false }).compile(plain)

it.each(SAMPLES)('the schema and the parser agree on %s', (text) => {
  const valid = validate(parseYaml(text))
  let is_taken = true
  try {
    parseCompose(text)
  } catch (error) {
    expect(error).toBeInstanceOf(ComposeError)
    is_taken = false
  }
  expect(is_taken).toBe(LENIENT.has(text) || (valid && !STRICTER.has(text)))
})
