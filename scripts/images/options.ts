import { parseArgs } from 'node:util'
import type { Wanted } from './recipe.ts'

export interface Options {
  help: boolean
  list: boolean
  /** Only print the names of selected images that are not there. */
  missing: boolean
  all: boolean
  /** Families or whole image names; empty means the usual set. */
  only: string[]
  /** Whether a registry is asked before anything is made. */
  pull: boolean
  rebuild: boolean
  mirror: string | undefined
  jobs: number
}

export const USAGE = `Makes the images that Portreeve needs and the engine does not have yet: pulled where a registry answers, made from
Debian's and npm's packages where none does.

  npm run images                         the usual set
  npm run images -- --only node,haproxy  some families, or whole names such as node:22-slim
  npm run images -- --all                everything that can be made
  npm run images -- --list               what is there, what could be made, what needs a registry

  --missing        only print the names of what is not there
  --no-pull        do not ask a registry first
  --rebuild        make stand-ins again that exist already, to take in newer packages
  --mirror <url>   Debian mirror to use instead of the one in this machine's apt sources
  --jobs <number>  how many images to make at a time (default 2)
  --help
`

/** A call that makes no sense; its message is all that the user sees. */
export class UsageError extends Error {}

/** Reads the command line, refusing what it does not know. */
export function parseOptions(args: readonly string[]): Options {
  const parsed = readArguments(args)
  const jobs = Number(parsed.jobs ?? '2')
  if (!Number.isInteger(jobs) || jobs < 1 || jobs > 16)
    throw new UsageError('--jobs must be a number from 1 to 16.')
  if (parsed.mirror !== undefined && !/^(https?|file):\/\/\S+$/.test(parsed.mirror))
    throw new UsageError('--mirror must be an http, https or file address.')
  const only = (parsed.only ?? [])
    .flatMap((value) => value.split(','))
    .map((name) => name.trim())
    .filter((name) => name !== '')
  if (parsed.only && only.length === 0)
    throw new UsageError('--only needs at least one family or image name.')
  if (parsed.all && only.length > 0) throw new UsageError('--all and --only exclude each other.')
  return {
    help: parsed.help ?? false,
    list: parsed.list ?? false,
    missing: parsed.missing ?? false,
    all: parsed.all ?? false,
    only,
    pull: !parsed['no-pull'],
    rebuild: parsed.rebuild ?? false,
    mirror: parsed.mirror,
    jobs,
  }
}

function readArguments(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: false,
      options: {
        help: { type: 'boolean', short: 'h' },
        list: { type: 'boolean' },
        missing: { type: 'boolean' },
        all: { type: 'boolean' },
        only: { type: 'string', multiple: true },
        'no-pull': { type: 'boolean' },
        rebuild: { type: 'boolean' },
        mirror: { type: 'string' },
        jobs: { type: 'string' },
      },
    }).values
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

/**
 * The images that a call is about. A family stands for its usual versions, else for its default one; `--all`
 * for everything that has a recipe.
 */
export function select(desired: readonly Wanted[], options: Pick<Options, 'all' | 'only'>): Wanted[] {
  if (options.all) return desired.filter((one) => one.recipe)
  if (options.only.length === 0) return desired.filter((one) => one.usual)
  return options.only.flatMap((name) => {
    const exact = desired.filter((one) => one.image === name)
    if (exact.length > 0) return exact
    const family = desired.filter((one) => one.family === name)
    if (family.length === 0)
      throw new UsageError(
        `There is no family and no image called "${name}". Families: ${[...new Set(desired.map((one) => one.family))].join(', ')}.`,
      )
    const usual = family.filter((one) => one.usual)
    return usual.length > 0 ? usual : family.filter((one) => one.family_default)
  })
}
