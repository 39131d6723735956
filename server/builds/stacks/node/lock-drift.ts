import type { SourceTree } from '../../plan.ts'
import { asFields, at, readJson } from '../../text-formats.ts'
import type { Manifest } from './manifest.ts'

const KINDS = ['dependencies', 'devDependencies', 'optionalDependencies'] as const
const NAMED = 3

/**
 * What npm's lockfile does not have of its manifest, as a sentence: `npm ci` would refuse such a pair. Undefined
 * when they fit, or when it cannot be told: lockfiles of npm 6, files that are too large, workspaces.
 */
export function lockDrift(tree: SourceTree, lockfile: string, manifest: Manifest): string | undefined {
  if (!lockfile.endsWith('.json') || manifest.workspaces.length > 0) return undefined
  const lock = readJson(tree, lockfile)
  const root = at(lock, 'packages', '')
  if (asFields(root) === undefined) return undefined
  const wanted = rangesOf(manifest.fields)
  const locked = rangesOf(root)
  const missing = [...wanted].filter(([name, range]) => locked.get(name) !== range).map(([name]) => name)
  if (missing.length === 0) return undefined
  const others = missing.length > NAMED ? ` and ${missing.length - NAMED} more` : ''
  return `${lockfile} does not fit package.json (${missing.slice(0, NAMED).join(', ')}${others}), so versions may differ from the locked ones: run npm install and commit ${lockfile}`
}

function rangesOf(fields: unknown): Map<string, string> {
  const ranges = new Map<string, string>()
  for (const kind of KINDS)
    for (const [name, range] of Object.entries(asFields(at(fields, kind)) ?? {}))
      if (typeof range === 'string') ranges.set(name, range)
  return ranges
}
