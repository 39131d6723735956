import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { type Item, keyOf } from '#server/project-file/items'
import type { ProjectFile } from '#server/project-file/schema'
import { EXIT } from '../client/exit-codes.ts'
import { CommandError } from '../terminal.ts'

/**
 * The text of a file beside the project file; undefined when it is not there. What lies elsewhere is refused,
 * also behind a link: a project file that came from somebody else must not send this person's own files away.
 */
function textBeside(folder: string, source: string): string | undefined {
  const place = join(folder, source)
  if (!existsSync(place)) return undefined
  const inside = relative(realpathSync(folder), realpathSync(place))
  if (inside === '..' || inside.startsWith('../') || !statSync(place).isFile())
    throw new CommandError(`${source} is no file in ${folder}. Nothing was changed.`, EXIT.REFUSED)
  return readFileSync(place, 'utf8')
}

/**
 * Puts the text of `file: <path>` of mounts in the place of the path, which is beside the project file. A file that
 * is missing here leaves a mount that is there as it is, like a secret; for a new one it is asked for.
 */
export function withFiles(file: ProjectFile, live: readonly Item[], folder: string): ProjectFile {
  const there = new Set(live.map(keyOf))
  const missing: string[] = []
  const apps = Object.entries(file.apps ?? {}).map(([name, app]) => {
    const mounts = Object.entries(app.mounts ?? {}).map(([path, { file: source, ...mount }]) => {
      if (source === undefined) return [path, mount] as const
      const content = textBeside(folder, source)
      if (content !== undefined) return [path, { ...mount, content }] as const
      if (!there.has(keyOf({ kind: 'mount', of: name, name: path })))
        missing.push(`${source} for ${path} of ${name}`)
      return [path, mount] as const
    })
    return [name, app.mounts === undefined ? app : { ...app, mounts: Object.fromEntries(mounts) }] as const
  })
  if (missing.length > 0)
    throw new CommandError(
      `These files are missing in ${folder}: ${missing.join(', ')}. Nothing was changed.`,
      EXIT.REFUSED,
    )
  return file.apps === undefined ? file : { ...file, apps: Object.fromEntries(apps) }
}
