import type { ServiceContext } from './context.ts'
import { own } from '#server/kernel/own'
import { parseEnvFile } from './env-file.ts'
import { at, type Fields, isFields } from './issues.ts'
import { inCheckout } from './repository-path.ts'
import { readBoolean, readPairs, readText } from './values.ts'

const NAME = /^[A-Za-z_][A-Za-z0-9_.-]*$/

/**
 * `.env`, `.env.production`, `api.env`: files of secrets that repositories leave out by custom, and whose place the
 * app's variables take.
 */
const LEFT_OUT = /(^|\/)[^/]*\.env(\.[^/]*)?$/
/**
 * Variables that stand in no such file: those that are made up for places of the compose file itself, such as the
 * password of a database, and those of Compose. A service that needs one names it.
 */
const OF_THE_FILE = /^(SERVICE_(USER|PASSWORD|HEX|BASE64)|COMPOSE)_/

/** Variables of a service: those of its files, and over them those of `environment`. */
export function readEnvironment(
  context: ServiceContext,
  fields: Fields,
  path: string,
): Record<string, string> {
  const here = at(path, 'environment')
  const all = new Map(readEnvFiles(context, fields.env_file, at(path, 'env_file')))
  for (const [name, value] of readPairs(context.issues, fields.environment, here)) {
    if (!NAME.test(name)) context.issues.add(here, 'has a name that no variable may have.')
    if (value === undefined || value === null) context.ask(name, at(here, name), false)
    const known = value ?? own(context.variables, name)
    if (known === undefined) all.delete(name)
    else if (known.includes('\0')) context.issues.add(at(here, name), 'must not hold NUL.')
    else all.set(name, known)
  }
  return Object.fromEntries(all)
}

function readEnvFiles(context: ServiceContext, value: unknown, path: string): Map<string, string> {
  const all = new Map<string, string>()
  if (value === undefined || value === null) return all
  for (const [index, entry] of (Array.isArray(value) ? value : [value]).entries()) {
    const here = Array.isArray(value) ? at(path, index) : path
    const fields: Fields = isFields(entry) ? entry : { path: entry }
    const name = readText(context.issues, fields.path, here)
    if (name === undefined) continue
    const required = readBoolean(context.issues, fields.required, at(here, 'required')) ?? true
    // A file that may be missing is missing: nothing stands in for it.
    const inside = inCheckout(context.directory, name)
    const is_left_out = required && LEFT_OUT.test(name) && inside !== undefined
    const text = fileOf(context, name, here, required && !is_left_out)
    if (text === undefined && is_left_out) {
      for (const [key, one] of Object.entries(context.own_variables))
        if (NAME.test(key) && !OF_THE_FILE.test(key) && context.room.takeText(one, here)) all.set(key, one)
      context.found.ignored.push({
        path: here,
        text: 'Not in the repository: the service gets all variables of the app instead.',
      })
    }
    // The app's variables are those of `.env` beside the compose file, changed: wherever its values are read.
    const changed = inside === inCheckout(context.directory, '.env') ? context.variables : {}
    const read = parseEnvFile(text ?? '') ?? context.issues.add(here, 'has too many empty lines in a row.')
    for (const [key, one] of Object.entries(read ?? {})) all.set(key, own(changed, key) ?? one)
  }
  return all
}

/** Text of a file of the repository. */
export function fileOf(
  context: Pick<ServiceContext, 'issues' | 'files' | 'directory' | 'room'>,
  name: string,
  path: string,
  required = true,
): string | undefined {
  const inside = inCheckout(context.directory, name)
  if (inside === undefined)
    return context.issues.add(path, 'is refused: it names a file outside of the repository.')
  if (!context.room.is_left) return undefined
  const text = context.files?.read(inside)
  if (text !== undefined) return context.room.takeText(text, path) ? text : undefined
  if (!required) return undefined
  return context.issues.add(
    path,
    context.files
      ? 'names a file that is not in the repository, or that is no text of at most 1 MiB.'
      : 'is refused: the file has no repository to take it from.',
  )
}
