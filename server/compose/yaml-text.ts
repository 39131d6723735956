import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isPair,
  isScalar,
  parseDocument,
  type ScalarTag,
  type Tags,
} from 'yaml'
import { isModestYaml } from '#server/kernel/modest-yaml'
import { ComposeError, type Fields, isFields } from './issues.ts'

export const MAX_COMPOSE_BYTES = 256 * 1024
const MAX_ALIASES = 100
const LIMITS = { characters: MAX_COMPOSE_BYTES, depth: 48, lines: 2500, line: 16 * 1024 }
/** Each may begin a value, and values take time: a file of the size limit could have a hundred thousand. */
const MARKS = /[,[{&*]|- /g
const MAX_MARKS = 6000
/** These do so outside of lists too, and a parser that goes on after a fault notes one for each of them. */
const LESSER_MARKS = /["'!]|[:?](?=\s)/g
const MAX_LESSER_MARKS = 12_000
/** Values that the file has once every alias stands for what it names. */
export const MAX_VALUES = 20_000

/** Compose reads `0440` as octal, as YAML 1.1 did; permissions are written so. */
const OCTAL: ScalarTag = {
  tag: 'tag:yaml.org,2002:int',
  default: true,
  test: /^0[0-7]{1,9}$/,
  resolve: (text) => Number.parseInt(text, 8),
}

/** A number of more digits than the program can count with stays the text that it is: an id of a chat, say. */
const LONG: ScalarTag = {
  tag: 'tag:yaml.org,2002:int',
  default: true,
  test: /^[-+]?[0-9]{16,}$/,
  resolve: (text) => (Number.isSafeInteger(Number(text)) ? Number(text) : text),
}

/** Texts whose trees are kept, and how long they may be. */
const KEPT = { texts: 4, characters: 64 * 1024 }
const kept = new Map<string, Fields>()

/**
 * YAML 1.2 with merge keys, as a tree that nobody changes. Throws a ComposeError, also for what is too large to
 * be read. A deployment asks several times for the same text, and reading it takes the most time of all it does.
 */
export function readComposeText(text: string): Fields {
  const known = kept.get(text)
  if (known) return known
  const tree = readText(text)
  if (text.length > KEPT.characters) return tree
  kept.set(text, tree)
  if (kept.size > KEPT.texts) kept.delete(kept.keys().next().value!)
  return tree
}

function readText(text: string): Fields {
  const refuse = (message: string): never => {
    throw new ComposeError([{ path: '', message }])
  }
  if (Buffer.byteLength(text) > MAX_COMPOSE_BYTES)
    return refuse(`The file is larger than ${MAX_COMPOSE_BYTES / 1024} KiB.`)
  const has = (marks: RegExp, most: number) => (text.match(marks)?.length ?? 0) > most
  if (!isModestYaml(text, LIMITS) || has(MARKS, MAX_MARKS) || has(LESSER_MARKS, MAX_LESSER_MARKS))
    return refuse('The file has too many lines, too long ones, or too many levels.')
  const document = documentOf(text) ?? refuse('The file has too many levels.')
  const [problem] = [...document.errors, ...document.warnings]
  if (problem) {
    const line = text.slice(0, problem.pos[0]).split('\n').length
    return refuse(`The file is not valid YAML (line ${line}): ${problem.message.slice(0, 200)}`)
  }
  const repeated = repeatedKey(document.contents)
  if (repeated) {
    const line = text.slice(0, repeated.at).split('\n').length
    return refuse(`The file names «${repeated.key.slice(0, 100)}» twice in one mapping (line ${line}).`)
  }
  if (valuesOf(document) > MAX_VALUES) return refuse('The file has too many values.')
  let tree: unknown
  try {
    tree = document.toJS({ maxAliasCount: MAX_ALIASES })
  } catch {
    return refuse(`The file uses aliases more than ${MAX_ALIASES} times.`)
  }
  return isFields(tree) ? tree : refuse('The file has no mapping with services.')
}

/** Undefined when the levels of the file are more than the parser has room for. */
function documentOf(text: string): Document.Parsed | undefined {
  const options = {
    version: '1.2',
    schema: 'core',
    merge: true,
    customTags: (tags: Tags) => [OCTAL, LONG, ...tags],
    logLevel: 'silent',
    // Of each fault it would copy a part of the file.
    prettyErrors: false,
    // Comparing keys with each other takes time with their square; they are looked through afterwards.
    uniqueKeys: false,
    stringKeys: true,
  } as const
  try {
    return parseDocument(text, options)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/**
 * How many values a document makes, without making them: an alias counts as much as what it names, and what
 * is merged into a mapping as well. Ends early when they are too many.
 */
function valuesOf(document: Document.Parsed): number {
  const sizes = new Map<string, number>()
  let total = 0
  const count = (node: unknown): void => {
    if (total > MAX_VALUES) return
    total++
    if (isAlias(node)) total += sizes.get(node.source) ?? 0
    const before = total
    if (isPair(node)) {
      count(node.key)
      count(node.value)
    } else if (isCollection(node)) for (const item of node.items) count(item)
    if (isCollection(node) && node.anchor) sizes.set(node.anchor, total - before)
  }
  count(document.contents)
  return total
}

/** The first key that a mapping has a second time: only the last would count, and nobody would see the first. */
function repeatedKey(node: unknown): { key: string; at: number } | undefined {
  if (isPair(node)) return repeatedKey(node.value)
  if (!isCollection(node)) return undefined
  const seen = new Set<string>()
  for (const item of node.items) {
    const name = isMap(node) && isPair(item) && isScalar(item.key) ? item.key : undefined
    const key = String(name?.value)
    if (name && seen.has(key)) return { key, at: name.range?.[0] ?? 0 }
    if (name) seen.add(key)
    const within = repeatedKey(item)
    if (within) return within
  }
  return undefined
}
