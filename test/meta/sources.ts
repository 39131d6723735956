import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { ROOT } from '#test/support/routes'

/** One file of the checkout. */
export interface SourceFile {
  /** From the root of the checkout: `server/apps/service.ts`. */
  path: string
  text: string
}

/** Files below some folders whose names end so; what git does not keep is left out. */
export function readSources(folders: readonly string[], ending = '.ts'): SourceFile[] {
  const skipped = /(^|\/)(node_modules|fixtures|\.output|\.nitro|\.data)(\/|$)/
  return folders.flatMap((folder) => {
    const entries = readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    return entries
      .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
      .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
      .filter((path) => !skipped.test(path))
      .sort()
      .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))
  })
}

/** One import of a file. */
export interface Import {
  /** As it is written. */
  specifier: string
  /** Path in the checkout without its ending, for own files; undefined for packages. */
  target: string | undefined
  /** Whether only types are imported. */
  type_only: boolean
}

/** Path in the checkout, without its ending, of what a file imports; undefined for packages. */
export function targetOf(specifier: string, path: string): string | undefined {
  if (specifier.startsWith('#server/')) return specifier.slice(1)
  return specifier.startsWith('.') ? join(dirname(path), specifier).replace(/\.ts$/, '') : undefined
}

/** What a file imports, statically or not. */
export function importsOf({ path, text }: SourceFile): Import[] {
  const found = [
    ...text.matchAll(
      /^(?:import|export)(\s+type)?\s[^'"]*?from\s+['"]([^'"]+)['"]|^import\s+['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)/gm,
    ),
  ]
  return found.map(([, type, from, bare, dynamic]) => {
    const specifier = from ?? bare ?? dynamic ?? ''
    return { specifier, target: targetOf(specifier, path), type_only: type !== undefined }
  })
}
