import type { SourceTree } from '../../plan.ts'
import { joinPath, skim } from '../../tree-queries.ts'
import {
  asFields,
  at,
  keysAt,
  listAt,
  readJson,
  readJson5,
  readYaml,
  textAt,
  type Fields,
} from '../../text-formats.ts'

/** A package.json, read with suspicion. */
export interface Manifest {
  /** Folder below the root; the root is the empty string. */
  folder: string
  /** Name of the file: package.json, or what else pnpm reads. */
  file: string
  name: string | undefined
  main: string | undefined
  module: boolean
  scripts: ReadonlyMap<string, string>
  /** All kinds of dependencies: name to requested range. */
  dependencies: ReadonlyMap<string, string>
  production_dependencies: ReadonlySet<string>
  workspaces: readonly string[]
  fields: Fields
}

/** Manifests that pnpm reads besides package.json. */
const OTHER_MANIFESTS: readonly (readonly [
  string,
  (tree: SourceTree, path: string) => Fields | undefined,
])[] = [
  ['package.json5', readJson5],
  ['package.yaml', readYaml],
]

/**
 * Whether a folder has a manifest of the Node world. A package.yaml without pnpm beside it is another
 * language's.
 */
export function hasManifest(tree: SourceTree, folder = ''): boolean {
  return (
    tree.has(joinPath(folder, 'package.json')) ||
    tree.has(joinPath(folder, 'package.json5')) ||
    (tree.has(joinPath(folder, 'package.yaml')) && tree.has('pnpm-lock.yaml'))
  )
}

/** The manifest of a folder. */
export function readManifest(tree: SourceTree, folder = ''): Manifest | undefined {
  const other = hasManifest(tree, folder)
    ? OTHER_MANIFESTS.find(([name]) => tree.has(joinPath(folder, name)))
    : undefined
  const json = readJson(tree, joinPath(folder, 'package.json'))
  const fields = json ?? other?.[1](tree, joinPath(folder, other[0]))
  if (fields === undefined) return undefined
  const workspaces = listAt(fields, 'workspaces')
  return {
    folder,
    file: json === undefined ? other![0] : 'package.json',
    name: textAt(fields, 'name'),
    main: textAt(fields, 'main'),
    module: textAt(fields, 'type') === 'module',
    scripts: texts(at(fields, 'scripts')),
    dependencies: new Map(
      ['peerDependencies', 'optionalDependencies', 'devDependencies', 'dependencies'].flatMap((key) => [
        ...texts(at(fields, key)),
      ]),
    ),
    production_dependencies: new Set(keysAt(fields, 'dependencies')),
    workspaces: workspaces.length > 0 ? workspaces : listAt(fields, 'workspaces', 'packages'),
    fields,
  }
}

function texts(value: unknown): Map<string, string> {
  const entries = Object.entries(asFields(value) ?? {})
  return new Map(
    entries.filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1].trim() !== '',
    ),
  )
}

/** What a framework sees of the package that is deployed. */
export interface NodeApp {
  /** The tree of the whole repository. */
  root: SourceTree
  /** The tree of the package. */
  tree: SourceTree
  manifest: Manifest
  /** Runs a package's binary with this app's package manager, e.g. `npx next build`. */
  exec(command: string): string
  /** Runs a script of the package. */
  script(name: string): string
}

/** Whether the package depends on any of these. */
export function uses(app: { manifest: Manifest }, ...names: string[]): boolean {
  return names.some((name) => app.manifest.dependencies.has(name))
}

/** The major version that the package asks for, when its range has one. */
export function majorOf(app: { manifest: Manifest }, name: string): number | undefined {
  const digits = /(?:^|[^\d.])(\d{1,4})(?:\.|$|[^\d])/.exec(` ${app.manifest.dependencies.get(name) ?? ''}`)
  return digits === null ? undefined : Number(digits[1])
}

/** Text of a configuration file in any of the usual extensions. */
export function configText(tree: SourceTree, base: string): string {
  const path = ['.js', '.mjs', '.cjs', '.ts', '.mts', '.cts']
    .map((extension) => base + extension)
    .find((name) => tree.has(name))
  return withoutLineComments(skim(tree, path))
}

/** Drops whole-line comments, so that a setting that is commented out does not count. */
function withoutLineComments(text: string): string {
  return text
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('//'))
    .join('\n')
}
