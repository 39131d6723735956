import { posix } from 'node:path'
import type { ServiceContext } from './context.ts'
import { type DotenvRules, parseDotenv } from '#server/kernel/dotenv'
import { own } from '#server/kernel/own'
import { interpolate } from './interpolate.ts'
import { at, type Fields, isFields, Issues } from './issues.ts'
import { inCheckout } from './repository-path.ts'
import { readBoolean, readPairs, readText } from './values.ts'

const NAME = /^[A-Za-z_][A-Za-z0-9_.-]*$/

/**
 * `.env`, `.env.production`, `api.env`: files of secrets that repositories leave out by custom, and
 * whose place the app's variables take.
 */
const LEFT_OUT = /\.env(\.|$)/
/**
 * Variables that stand in no such file: those that are made up for places of the compose file
 * itself, such as the password of a database, and those of Compose. A service that needs one names
 * it.
 */
const OF_THE_FILE = /^(SERVICE_(USER|PASSWORD|HEX|BASE64)|COMPOSE)_/

/** A variable takes time whatever its length. */
const COST_OF_ONE = 32
/** As many as an app may have, and as much as a compose file may have. */
const MOST_IN_FILE = 2000
const LONGEST_FILE = 256 * 1024
/** The same with what its values name of one another: each may be twice the one before. */
const LONGEST_WHOLE = 4 * LONGEST_FILE

interface Surroundings {
  /** What the file's own variables go before; or after, where the app changes them as it does those of `.env`. */
  variables: Readonly<Record<string, string>>
  changes_file: boolean
}

/** Compose reads a `#` behind a space alone as a comment, and puts variables in where no single quotes are. */
function composeRules({ variables, changes_file }: Surroundings): DotenvRules {
  const all: Record<string, string> = Object.assign(Object.create(null), variables)
  return {
    comment: /(?:^|\s)#/,
    most_characters: LONGEST_WHOLE,
    expand(value) {
      const issues = new Issues()
      const { tree } = interpolate(value, { variables: all, issues, strict: false })
      // A dollar that begins no variable is one: that of a hash, say.
      return issues.found.length > 0 ? value : String(tree)
    },
    note(key, value) {
      if (!changes_file || !Object.hasOwn(variables, key)) all[key] = value
    },
  }
}

/** Variables of a file in the format of dotenv. Each text is read once, however often it is named. */
export function readDotenvFile(
  { issues, dotenv }: Pick<ServiceContext, 'issues' | 'dotenv'>,
  text: string,
  path: string,
  surroundings: Surroundings,
): Readonly<Record<string, string>> {
  const known = dotenv.get(text)
  if (known) return known
  const found =
    text.length > LONGEST_FILE ? undefined : parseDotenv(text, MOST_IN_FILE, composeRules(surroundings))
  if (!found) issues.add(path, `has more than ${MOST_IN_FILE} variables or ${LONGEST_FILE / 1024} KiB.`)
  dotenv.set(text, found ?? {})
  return found ?? {}
}

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
    else if (context.room.take('variable_characters', name.length + known.length + COST_OF_ONE))
      all.set(name, known)
  }
  return Object.fromEntries(all)
}

function readEnvFiles(context: ServiceContext, value: unknown, path: string): Map<string, string> {
  const all = new Map<string, string>()
  if (value === undefined || value === null) return all
  const set = (key: string, one: string): boolean => {
    const has_room = context.room.take('variable_characters', key.length + one.length + COST_OF_ONE)
    if (has_room) all.set(key, one)
    return has_room
  }
  for (const [index, entry] of (Array.isArray(value) ? value : [value]).entries()) {
    if (context.room.isSpent('variable_characters')) return all
    const here = Array.isArray(value) ? at(path, index) : path
    const fields: Fields = isFields(entry) ? entry : { path: entry }
    const name = readText(context.issues, fields.path, here)
    if (name === undefined) continue
    const required = readBoolean(context.issues, fields.required, at(here, 'required')) ?? true
    // A file that may be missing is missing: nothing stands in for it.
    const inside = inCheckout(context.directory, name)
    const is_left_out = required && LEFT_OUT.test(posix.basename(name)) && inside !== undefined
    const text = fileOf(context, name, here, required && !is_left_out)
    if (text === undefined && is_left_out) {
      for (const [key, one] of Object.entries(context.own_variables))
        if (NAME.test(key) && !OF_THE_FILE.test(key) && !set(key, one)) return all
      context.found.ignored.push({
        path: here,
        text: 'Not in the repository: the service gets all variables of the app instead.',
      })
    }
    // The app's variables are those of `.env` beside the compose file, changed: wherever its values
    // are read.
    const changed = inside === inCheckout(context.directory, '.env') ? context.variables : {}
    const surroundings = { variables: context.variables, changes_file: false }
    for (const [key, one] of Object.entries(readDotenvFile(context, text ?? '', here, surroundings)))
      if (!set(key, own(changed, key) ?? one)) return all
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
  if (!context.room.take('mounts', 1)) return undefined
  const text = context.files?.read(inside)
  if (text !== undefined || !required) return text
  return context.issues.add(
    path,
    context.files
      ? 'names a file that is not in the repository, or that is no text of at most 1 MiB.'
      : 'is refused: the file has no repository to take it from.',
  )
}
