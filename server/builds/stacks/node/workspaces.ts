import type { SourceTree } from '../../plan.ts'
import { compare, folderOf } from '../../tree-queries.ts'
import { listAt, readJson, readYaml } from '../../text-formats.ts'
import { readManifest, type Manifest } from './manifest.ts'

const MAX_PACKAGES = 200

/** The packages of a monorepo, the root left out; empty for a single package. */
export function workspacePackages(tree: SourceTree, root: Manifest): Manifest[] {
  const patterns = [
    ...listAt(readYaml(tree, 'pnpm-workspace.yaml'), 'packages'),
    ...root.workspaces,
    ...listAt(readJson(tree, 'lerna.json'), 'packages'),
    ...(tree.has('nx.json') || tree.has('rush.json') || tree.has('turbo.json')
      ? ['apps/*', 'packages/*', 'libs/*']
      : []),
  ]
  if (patterns.length === 0) return []
  const included = patterns.filter((pattern) => !pattern.startsWith('!')).map(matcher)
  const excluded = patterns
    .filter((pattern) => pattern.startsWith('!'))
    .map((pattern) => matcher(pattern.slice(1)))
  const folders = tree
    .files()
    .filter((path) => /\/package\.(?:json5?|yaml)$/.test(path))
    .map(folderOf)
    // A folder with any other character could not be named in a Dockerfile without care; nobody has one.
    .filter((folder) => /^[A-Za-z0-9._/@+-]+$/.test(folder))
    .filter(
      (folder) => included.some((matches) => matches(folder)) && !excluded.some((matches) => matches(folder)),
    )
  return [...new Set(folders)].slice(0, MAX_PACKAGES).flatMap((folder) => readManifest(tree, folder) ?? [])
}

/**
 * Workspace globs know `*`, `**` and nothing else worth knowing; matched by parts, so that no pattern can be
 * slow.
 */
function matcher(pattern: string): (folder: string) => boolean {
  const requested = pattern.replace(/^\.\//, '').replace(/\/+$/, '').split('/')
  return (folder) => matchParts(requested, folder.split('/'))
}

function matchParts(desired: readonly string[], parts: readonly string[]): boolean {
  const deep = desired.indexOf('**')
  if (deep < 0)
    return desired.length === parts.length && desired.every((part, index) => matchPart(part, parts[index]!))
  const head = desired.slice(0, deep)
  const tail = desired.slice(deep + 1).filter((part) => part !== '**')
  if (parts.length < head.length + tail.length) return false
  const end = parts.slice(parts.length - tail.length)
  return (
    head.every((part, index) => matchPart(part, parts[index]!)) &&
    tail.every((part, index) => matchPart(part, end[index]!))
  )
}

function matchPart(pattern: string, part: string): boolean {
  const star = pattern.indexOf('*')
  if (star < 0) return pattern === part
  const [before, after] = [pattern.slice(0, star), pattern.slice(pattern.lastIndexOf('*') + 1)]
  return part.length >= before.length + after.length && part.startsWith(before) && part.endsWith(after)
}

const LIKELY_FOLDERS = [
  'web',
  'app',
  'website',
  'site',
  'www',
  'frontend',
  'client',
  'server',
  'backend',
  'api',
  'dashboard',
]

/**
 * The package to deploy. A package that the root's start script names wins; else one that can run, apps
 * before libraries, and among several the one whose folder has the most usual name.
 */
export function chooseWorkspace(
  root: Manifest,
  packages: readonly Manifest[],
  canRun: (manifest: Manifest) => boolean,
): Manifest | undefined {
  const start = root.scripts.get('start') ?? ''
  const named = packages.find((candidate) => mentions(start, candidate))
  if (named !== undefined) return named
  const runnable = packages.filter(canRun)
  return runnable.sort((a, b) => rank(b) - rank(a) || compare(a.folder, b.folder))[0]
}

function mentions(script: string, candidate: Manifest): boolean {
  const words = script.split(/[\s=;&|'"]+/)
  return words.some(
    (word) =>
      word !== '' &&
      (word === candidate.name ||
        word.replace(/^\.\//, '').replace(/\/$/, '') === candidate.folder ||
        word === `${candidate.name}#start`),
  )
}

function rank(manifest: Manifest): number {
  const last = manifest.folder.split('/').at(-1)!
  const likely = LIKELY_FOLDERS.indexOf(last)
  const in_apps = /^(apps?|services|sites)\//.test(manifest.folder) ? 100 : 0
  const library =
    /^(packages|libs|examples?|e2e|docs?|tools?)(\/|$)/.test(manifest.folder) ||
    /(^|-)(docs?|storybook|e2e|mobile|native)$/.test(last)
      ? -50
      : 0
  return in_apps + library + (likely >= 0 ? 40 - likely : 0) + (manifest.scripts.has('start') ? 5 : 0)
}

/**
 * Packages of the repository that `target` needs, in the order in which they must be built, `target` last.
 */
export function buildOrder(target: Manifest, packages: readonly Manifest[]): Manifest[] {
  const by_name = new Map(
    packages.flatMap((candidate) =>
      candidate.name === undefined ? [] : [[candidate.name, candidate] as const],
    ),
  )
  const ordered: Manifest[] = []
  const seen = new Set<Manifest>()
  const visit = (manifest: Manifest): void => {
    if (seen.has(manifest)) return
    seen.add(manifest)
    for (const name of manifest.dependencies.keys()) {
      const local = by_name.get(name)
      if (local !== undefined) visit(local)
    }
    ordered.push(manifest)
  }
  visit(target)
  return ordered
}
