import { parseDocument, type ScalarTag } from 'yaml'
import { isModestYaml } from '#server/kernel/modest-yaml'
import { ComposeError, type Fields, isFields } from './issues.ts'

export const MAX_COMPOSE_BYTES = 256 * 1024
const MAX_ALIASES = 100
const LIMITS = { characters: MAX_COMPOSE_BYTES, depth: 48, lines: 2500, line: 16 * 1024 }
/** Each may begin a value, and values take time: a file of the size limit could have a hundred thousand. */
const MARKS = /[,[{&*]|- /g
const MAX_MARKS = 6000

/** Compose reads `0440` as octal, as YAML 1.1 did; permissions are written so. */
const OCTAL: ScalarTag = {
  tag: 'tag:yaml.org,2002:int',
  default: true,
  test: /^0[0-7]{1,9}$/,
  resolve: (text) => Number.parseInt(text, 8),
}

/** YAML 1.2 with merge keys, as a tree. Throws a ComposeError, also for what is too large to be read. */
export function readComposeText(text: string): Fields {
  const refuse = (message: string): never => {
    throw new ComposeError([{ path: '', message }])
  }
  if (Buffer.byteLength(text) > MAX_COMPOSE_BYTES)
    return refuse(`The file is larger than ${MAX_COMPOSE_BYTES / 1024} KiB.`)
  if (!isModestYaml(text, LIMITS) || (text.match(MARKS)?.length ?? 0) > MAX_MARKS)
    return refuse('The file has too many lines, too long ones, or too many levels.')
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    merge: true,
    customTags: (tags) => [OCTAL, ...tags],
    logLevel: 'silent',
    prettyErrors: true,
    // Comparing keys with each other takes time with their square.
    uniqueKeys: false,
    stringKeys: true,
  })
  const [problem] = [...document.errors, ...document.warnings]
  if (problem) {
    const line = problem.linePos?.[0].line
    return refuse(`The file is not valid YAML${line ? ` (line ${line})` : ''}: ${summary(problem.message)}`)
  }
  let tree: unknown
  try {
    tree = document.toJS({ maxAliasCount: MAX_ALIASES })
  } catch {
    return refuse(`The file uses aliases more than ${MAX_ALIASES} times.`)
  }
  return isFields(tree) ? tree : refuse('The file has no mapping with services.')
}

/** The first line, without the excerpt of the file that follows it. */
const summary = (message: string): string =>
  (message.split('\n')[0] ?? '').replace(/ at line \d+.*$/, '').slice(0, 200)
