import { isModestYaml } from '#server/kernel/modest-yaml'
import { own } from '#server/kernel/own'
import { parseJSON5 } from 'confbox/json5'
import { parse as parseTomlText } from 'smol-toml'
import { parse as parseYamlText } from 'yaml'
import type { SourceTree } from './plan.ts'

/** Nothing is noted of how the text was indented: finding that out takes quadratic time. */
const AS_IT_IS = { preserveIndentation: false, preserveWhitespace: false }

/** What a parsed file is: nothing about its shape is trusted, values are asked for one by one. */
export type Fields = Record<string, unknown>

/**
 * A file that should be JSON (comments and trailing commas allowed). Undefined when it is missing or wrong.
 */
export function readJson(tree: SourceTree, path: string): Fields | undefined {
  const text = tree.read(path)
  return text === undefined ? undefined : attempt(() => parseJson(text))
}

/** A file that should be JSON5. */
export function readJson5(tree: SourceTree, path: string): Fields | undefined {
  const text = tree.read(path)
  return text === undefined ? undefined : attempt(() => parseJSON5(text, AS_IT_IS))
}

/** A file that should be TOML. */
export function readToml(tree: SourceTree, path: string): Fields | undefined {
  const text = tree.read(path)
  return text === undefined
    ? undefined
    : attempt(() => parseTomlText(text.slice(text.startsWith('\uFEFF') ? 1 : 0)))
}

/**
 * A file that should be YAML 1.2. Undefined also when its shape is one that no person writes. Of a file with a
 * mistake in it, what comes before is taken: templates of other tools often are no YAML to the end.
 */
export const readYaml = (tree: SourceTree, path: string): Fields | undefined =>
  yamlOf(tree.read(path), 'silent')

/** The same for a file of settings: with a mistake in it, it is not read at all. */
export const readStrictYaml = (tree: SourceTree, path: string): Fields | undefined =>
  yamlOf(tree.read(path), 'error')

/** At the level `silent` the parser passes over mistakes, at `error` it throws the first. */
function yamlOf(text: string | undefined, logLevel: 'silent' | 'error'): Fields | undefined {
  if (text === undefined || !isModestYaml(text, YAML_LIMITS)) return undefined
  return attempt(() =>
    parseYamlText(text, {
      maxAliasCount: 50,
      logLevel,
      prettyErrors: false,
      uniqueKeys: false,
    }),
  )
}

/** Parses JSON; on failure once more as JSON5, with comments and trailing commas. Throws when it is neither. */
export function parseJson(text: string): unknown {
  const clean = text.startsWith('\uFEFF') ? text.slice(1) : text
  try {
    return JSON.parse(clean)
  } catch {
    return parseJSON5(clean, AS_IT_IS)
  }
}

/**
 * For the same reason that these are bounded, keys are not compared with each other: that is quadratic.
 */
const YAML_LIMITS = { characters: 64 * 1024, depth: 48, lines: 2500, line: 4096 }

function attempt(parse: () => unknown): Fields | undefined {
  try {
    return asFields(parse())
  } catch {
    return undefined
  }
}

/** The value as an object, never an array. */
export function asFields(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined
}

/** The value at a path of keys; only own keys count, so `__proto__` is nothing special. */
export function at(value: unknown, ...keys: string[]): unknown {
  let current = value
  for (const key of keys) {
    const fields = asFields(current)
    if (fields === undefined || !Object.hasOwn(fields, key)) return undefined
    current = own(fields, key)
  }
  return current
}

/** The non-empty text at a path of keys. */
export function textAt(value: unknown, ...keys: string[]): string | undefined {
  const found = at(value, ...keys)
  return typeof found === 'string' && found.trim() !== '' ? found.trim() : undefined
}

/** The texts of the list at a path of keys. */
export function listAt(value: unknown, ...keys: string[]): string[] {
  const found = at(value, ...keys)
  return Array.isArray(found) ? found.filter((item): item is string => typeof item === 'string') : []
}

/** The keys of the object at a path of keys. */
export function keysAt(value: unknown, ...keys: string[]): string[] {
  return Object.keys(asFields(at(value, ...keys)) ?? {})
}

/** The text inside the first `<tag>` of an XML file; attributes are allowed, nesting is not. */
export function xmlText(text: string, tag: string): string | undefined {
  const open = text.search(new RegExp(`<${tag}(?:\\s[^<>]{0,200})?>`))
  if (open < 0) return undefined
  const start = text.indexOf('>', open) + 1
  const end = text.indexOf('<', start)
  const value = end < 0 || end - start > 500 ? '' : text.slice(start, end).trim()
  return value === '' ? undefined : value
}
