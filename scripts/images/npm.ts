import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { must } from './command.ts'

/** A package whose unpacked content goes into the build context as `npm/<folder>`. */
export interface NpmPart {
  folder: string
  package: string
  /** Semantic version range; the newest version in it is taken. */
  range: string
}

/**
 * Downloads packages and unpacks them below `context`; packages run no script of theirs here. One call of npm
 * fetches all of them, since each takes a second of a processor before it does anything.
 */
export async function unpackNpmParts(
  parts: readonly NpmPart[],
  context: string,
  signal?: AbortSignal,
): Promise<void> {
  const scratch = await mkdtemp(join(context, '.npm-'))
  try {
    // Run outside the checkout, so that its .npmrc says nothing about packages of the images.
    const options = { cwd: scratch, signal, timeout_ms: 5 * 60_000 }
    // npm itself chooses the newest version in the range, and knows the archive's name.
    const requested = parts.map((part) => `${part.package}@${part.range}`)
    const printed = await must(['npm', 'pack', '--silent', '--ignore-scripts', ...requested], options)
    const archives = printed.trim().split('\n')
    if (archives.length !== parts.length)
      throw new Error(`npm packed other than ${requested.join(' ')}: ${printed}`)
    for (const [index, part] of parts.entries()) {
      await must(['tar', '--extract', '--gzip', '--no-same-owner', '--file', `./${archives[index]}`], options)
      const target = join(context, 'npm', part.folder)
      await mkdir(dirname(target), { recursive: true })
      await rename(join(scratch, 'package'), target)
    }
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

/** The registry that this machine's npm was told to use; undefined when it is npm's own choice. */
export async function customRegistry(): Promise<string | undefined> {
  const requested = ['npm', 'config', 'get', 'registry']
  const chosen = (await must(requested, { cwd: '/' })).trim()
  const without = { npm_config_registry: undefined, NPM_CONFIG_REGISTRY: undefined }
  const usual = (
    await must([...requested, '--userconfig=/dev/null', '--globalconfig=/nonexistent'], {
      cwd: '/',
      env: without,
    })
  ).trim()
  // An address with a password would end up readable in every image.
  return chosen === usual || new URL(chosen).password !== '' ? undefined : chosen
}

/**
 * Whether the registry signs its packages; corepack refuses to work with one that does not unless it is told.
 */
export async function registrySigns(): Promise<boolean> {
  return (await must(['npm', 'view', 'pnpm', 'dist.signatures', '--json'], { cwd: '/' })).trim() !== ''
}
