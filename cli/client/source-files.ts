import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import ignore, { type Ignore } from 'ignore'
import { run, SpawnError } from '#server/kernel/process'
import { CommandError } from '../terminal.ts'
import { EXIT } from './exit-codes.ts'

const MOST_LIST_BYTES = 256 * 1024 * 1024
/** What an import writes beside `portreeve.yaml`: no image gets it, whether git was told of it or not. */
export const SECRETS_FILE = 'portreeve.secrets'

/** What git would track below a folder; undefined where git is missing or knows nothing of the folder. */
async function listWithGit(folder: string): Promise<string[] | undefined> {
  // Of the settings of a folder this one alone names a program that is run for a list.
  const argv = [
    'git',
    '-c',
    'core.fsmonitor=false',
    'ls-files',
    '-z',
    '--cached',
    '--others',
    '--exclude-standard',
    '--deduplicate',
  ]
  try {
    const result = await run(argv, {
      cwd: folder,
      max_output_bytes: MOST_LIST_BYTES,
      ...(process.env.HOME ? { env: { HOME: process.env.HOME } } : {}),
    })
    if (result.exit_code !== 0 || result.truncated) return undefined
    return result.stdout.split('\0').filter((path) => path !== '')
  } catch (error) {
    if (error instanceof SpawnError) return undefined
    throw error
  }
}

function rulesOf(folder: string): Ignore | undefined {
  try {
    return ignore().add(readFileSync(join(folder, '.gitignore'), 'utf8'))
  } catch {
    return undefined
  }
}

/** The same by the rules of `.gitignore` alone, each for what is below its folder. */
function listByRules(root: string): string[] {
  const found: string[] = []
  const walk = (folder: string, above: readonly { base: string; rules: Ignore }[]) => {
    const own_rules = rulesOf(folder)
    const rules = own_rules ? [...above, { base: folder, rules: own_rules }] : above
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name)
      if (entry.name === '.git') continue
      const ignored = rules.some(({ base, rules: each }) =>
        each.ignores(relative(base, path) + (entry.isDirectory() ? '/' : '')),
      )
      if (ignored) continue
      if (entry.isDirectory()) walk(path, rules)
      else if (entry.isFile() || entry.isSymbolicLink()) found.push(relative(root, path))
    }
  }
  walk(root, [])
  return found
}

/** Paths of the files and links to send, in order: what git tracks or would track. */
export async function sourceFiles(root: string): Promise<string[]> {
  if (!lstatSync(root, { throwIfNoEntry: false })?.isDirectory())
    throw new CommandError(`${root} is no folder.`, EXIT.USAGE)
  const listed = (await listWithGit(root)) ?? listByRules(root)
  const files: string[] = []
  for (const path of listed) {
    const found = lstatSync(join(root, path), { throwIfNoEntry: false })
    // A submodule is listed as its folder; a file that was removed is still tracked.
    if (found?.isDirectory())
      files.push(...(await sourceFiles(join(root, path))).map((below) => join(path, below)))
    else if (basename(path) === SECRETS_FILE) continue
    else if (found?.isFile() || found?.isSymbolicLink()) files.push(path)
  }
  if (files.length === 0)
    throw new CommandError(`There is nothing to deploy in ${root}: no file that git would track.`, EXIT.USAGE)
  return files.sort()
}
