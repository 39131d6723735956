import { createHash } from 'node:crypto'
import { execFileSync } from 'node:child_process'

/** Packages of the build whose code stands in the product: the dashboard's and the command line's. */
const BUNDLED = [
  'vue',
  'vue-router',
  'reka-ui',
  '@tanstack/vue-query',
  '@lucide/vue',
  'commander',
  'ignore',
  'openapi-fetch',
]

interface Component {
  'bom-ref': string
  name: string
  properties?: unknown
  externalReferences?: unknown
  [key: string]: unknown
}
interface Bom {
  serialNumber: string
  metadata: { timestamp?: string; tools?: unknown; component: Component; lifecycles?: unknown }
  components: Component[]
  dependencies: { ref: string; dependsOn?: string[] }[]
}

function list(root: string, options: readonly string[]): Bom {
  const argv = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only', ...options]
  return JSON.parse(
    execFileSync('npm', argv, {
      cwd: root,
      maxBuffer: 2 ** 28,
      stdio: ['ignore', 'pipe', 'ignore'],
    }).toString(),
  ) as Bom
}

/** Everything that these need, themselves included. */
function closure(bom: Bom, names: readonly string[]): Set<string> {
  const needs = new Map(bom.dependencies.map(({ ref, dependsOn = [] }) => [ref, dependsOn]))
  const found = new Set<string>()
  const open = bom.components.filter(({ name, group }) => names.includes(group ? `${group}/${name}` : name))
  const refs = open.map((one) => one['bom-ref'])
  while (refs.length > 0) {
    const ref = refs.pop()!
    if (found.has(ref)) continue
    found.add(ref)
    refs.push(...(needs.get(ref) ?? []))
  }
  return found
}

/** A UUID made of a text, so that the list of one commit is always the same. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex')
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `5${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-')
}

/** The CycloneDX list of what is inside the binary: production packages, what is bundled, and Node. */
export function materials(root: string, version: string, digest: string): string {
  const production = list(root, ['--omit', 'dev', '--omit', 'optional'])
  const all = list(root, [])
  const bundled = closure(all, BUNDLED)
  const known = new Set(production.components.map((one) => one['bom-ref']))
  const added = all.components.filter((one) => bundled.has(one['bom-ref']) && !known.has(one['bom-ref']))
  // Where packages were fetched from is a matter of the build machine.
  const components = [...production.components, ...added].map(
    ({ externalReferences: _where, properties: _path, ...component }) => component,
  )
  const node: Component = {
    'bom-ref': `node@${process.versions.node}`,
    type: 'platform',
    name: 'node',
    version: process.versions.node,
    purl: `pkg:generic/node@${process.versions.node}`,
  }
  const refs = new Set([...components, node].map((one) => one['bom-ref']))
  const { timestamp: _timestamp, ...metadata } = production.metadata
  return `${JSON.stringify(
    {
      ...production,
      serialNumber: `urn:uuid:${uuidOf(digest)}`,
      metadata: {
        ...metadata,
        component: {
          'bom-ref': `portreeve@${version}`,
          type: 'application',
          name: 'portreeve',
          version,
          hashes: [{ alg: 'SHA-256', content: digest }],
        },
      },
      components: [...components, node].sort((a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1)),
      dependencies: all.dependencies.filter(({ ref }) => refs.has(ref)),
    },
    null,
    2,
  )}\n`
}
