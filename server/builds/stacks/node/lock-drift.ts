import type { SourceTree } from '../../plan.ts'
import { joinPath } from '../../tree-queries.ts'
import { asFields, at, readJson } from '../../text-formats.ts'
import type { Manifest } from './manifest.ts'

const KINDS = ['dependencies', 'devDependencies', 'optionalDependencies'] as const
const NAMED = 3

/**
 * What npm's lockfile does not have of the manifests, as a sentence: `npm ci` would refuse such a pair. Undefined
 * when they fit, or when it cannot be told: files that are too large.
 */
export function lockDrift(
  tree: SourceTree,
  lockfile: string,
  manifest: Manifest,
  members: readonly Manifest[] = [],
): string | undefined {
  if (!lockfile.endsWith('.json')) return undefined
  const lock = readJson(tree, lockfile)
  if (lock === undefined) return undefined
  const locals = new Set(members.map(({ name }) => name))
  const missing = [manifest, ...members].flatMap((one) =>
    missingOf(lock, one).filter((name) => !locals.has(name)),
  )
  const names = [...new Set(missing)]
  if (names.length === 0) return undefined
  const others = names.length > NAMED ? ` and ${names.length - NAMED} more` : ''
  return `${lockfile} does not fit package.json (${names.slice(0, NAMED).join(', ')}${others}), so versions may differ from the locked ones: run npm install and commit ${lockfile}`
}

/** Names that the lockfile has in another range, or not at all. */
function missingOf(lock: unknown, { folder, fields }: Manifest): string[] {
  const requested = [...rangesOf(fields)]
  const packages = asFields(at(lock, 'packages'))
  if (packages === undefined) {
    // A lockfile of npm 6 says which versions there are, and not which ranges were asked for.
    const locked = asFields(at(lock, 'dependencies')) ?? {}
    const is_known = folder === '' && at(lock, 'lockfileVersion') === 1
    return is_known ? requested.map(([name]) => name).filter((name) => !Object.hasOwn(locked, name)) : []
  }
  const entry = asFields(at(packages, folder))
  // The root is always there; a member may have been left out by who wrote the lockfile.
  if (entry === undefined) return folder === '' ? [] : requested.map(([name]) => name)
  const locked = rangesOf(entry)
  const placed = (name: string) =>
    Object.hasOwn(packages, joinPath(folder, 'node_modules', name)) ||
    Object.hasOwn(packages, `node_modules/${name}`)
  const optional = new Set(rangesOf({ optionalDependencies: at(fields, 'optionalDependencies') }).keys())
  return requested
    .filter(([name, range]) => locked.get(name) !== range || !(placed(name) || optional.has(name)))
    .map(([name]) => name)
}

function rangesOf(fields: unknown): Map<string, string> {
  const ranges = new Map<string, string>()
  for (const kind of KINDS)
    for (const [name, range] of Object.entries(asFields(at(fields, kind)) ?? {}))
      if (typeof range === 'string') ranges.set(name, range)
  return ranges
}
