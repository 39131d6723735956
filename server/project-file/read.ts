import * as v from 'valibot'
import { parseDocument } from 'yaml'
import { editsBetween } from '#server/kernel/edits'
import { isModestYaml } from '#server/kernel/modest-yaml'
import { own } from '#server/kernel/own'
import { unusable } from '#server/kernel/unusable'
import { sentence } from '#server/kernel/sentences'
import { seemsSecret } from '#server/kernel/secret-names'
import { type Mount, ProjectFile } from './schema.ts'

export const PROJECT_FILES = ['portreeve.yaml', 'portreeve.yml'] as const
const LIMITS = { characters: 1024 * 1024, depth: 32, lines: 10_000, line: 300_000 }
const MAX_ALIASES = 100

/** One thing that is wrong with a file, where it is. */
export interface FileFault {
  path: string
  message: string
}
export class ProjectFileError extends Error {
  readonly faults: readonly FileFault[]
  constructor(faults: readonly FileFault[]) {
    super(faults.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join('\n'))
    this.name = 'ProjectFileError'
    this.faults = faults
  }
}
const refuse = (message: string, path = ''): never => {
  throw new ProjectFileError([{ path, message }])
}

type Tree = Record<string, unknown>
const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isScalar = (value: unknown): value is string | number | boolean =>
  ['string', 'number', 'boolean'].includes(typeof value)

/** Writes the short forms of every entry of a mapping out. */
const eachOf = (value: unknown, expand: (entry: unknown) => unknown): unknown =>
  isTree(value)
    ? Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, expand(entry)]))
    : value
const expandVariable = (entry: unknown): unknown => {
  if (isScalar(entry)) return { value: String(entry) }
  return isTree(entry) && isScalar(entry.value) ? { ...entry, value: String(entry.value) } : entry
}
const expandDomain = (entry: unknown): unknown => (typeof entry === 'string' ? { hostname: entry } : entry)
/** YAML reads `17` as a number; a release line is a text. */
const expandDatabase = (entry: unknown): unknown =>
  isTree(entry) && typeof entry.version === 'number' ? { ...entry, version: String(entry.version) } : entry
const expandMount = (entry: unknown): unknown => (typeof entry === 'string' ? { volume: entry } : entry)
const withExpanded = (tree: Tree, expansions: Record<string, (value: unknown) => unknown>): Tree => ({
  ...tree,
  ...Object.fromEntries(
    Object.entries(expansions).flatMap(([key, expand]) =>
      Object.hasOwn(tree, key) ? [[key, expand(own(tree, key))]] : [],
    ),
  ),
})
const expandApp = (entry: unknown): unknown =>
  isTree(entry)
    ? withExpanded(entry, {
        variables: (all) => eachOf(all, expandVariable),
        domains: (all) => (Array.isArray(all) ? all.map(expandDomain) : all),
        mounts: (all) => eachOf(all, expandMount),
      })
    : entry
/** `volumes: { uploads: }` has the usual settings. */
const expandVolume = (entry: unknown): unknown => entry ?? {}
const expandFile = (tree: Tree): Tree =>
  withExpanded(tree, {
    variables: (all) => eachOf(all, expandVariable),
    databases: (all) => eachOf(all, expandDatabase),
    volumes: (all) => eachOf(all, expandVolume),
    apps: (all) => eachOf(all, expandApp),
  })

interface Node {
  type: string
  wrapped?: Node
  entries?: Record<string, Node>
  value?: Node
  item?: Node
}
/** The fields that a mapping of the file may have; none where any name is possible. */
function fieldsAt(path: readonly (string | number)[]): string[] {
  let node: Node | undefined = ProjectFile as unknown as Node
  for (const key of path) {
    while (node?.wrapped) node = node.wrapped
    node = own(node?.entries, String(key)) ?? node?.value ?? node?.item
  }
  while (node?.wrapped) node = node.wrapped
  return Object.keys(node?.entries ?? {})
}
/** The field that was probably meant. */
export function nearest(name: string, fields: readonly string[]): string | undefined {
  const [best] = fields
    .map((field) => ({ field, edits: editsBetween(name.toLowerCase(), field) }))
    .sort((a, b) => a.edits - b.edits)
  return best && best.edits <= Math.max(1, name.length / 2) ? best.field : undefined
}

function sentenceOf(issue: v.BaseIssue<unknown>): FileFault {
  const keys = (issue.path ?? []).map(({ key }) => key as string | number)
  const path = keys.join('.')
  if (issue.expected === 'never') {
    const fields = fieldsAt(keys.slice(0, -1))
    const meant = nearest(String(keys.at(-1)), fields)
    return {
      path,
      message: meant ? `is not known. Did you mean ${meant}?` : `is not known. Known: ${fields.join(', ')}.`,
    }
  }
  // The library's own words repeat the value, which may be a secret.
  const has_own_words = !/^Invalid \w+: /.test(issue.message)
  return { path, message: has_own_words ? issue.message : sentence(issue) }
}

/** What the schema cannot say. */
function contradictions(file: ProjectFile): FileFault[] {
  const faults: FileFault[] = []
  const look = (at: string, all: ProjectFile['variables']) => {
    for (const [key, { value, secret }] of Object.entries(all ?? {})) {
      const path = `${at}variables.${key}`
      if (value === undefined && secret !== true)
        faults.push({ path, message: 'has no value. For one that is kept elsewhere write { secret: true }.' })
      if (value !== undefined && secret === true)
        faults.push({ path, message: 'is a secret: leave its value out, and give it with --secrets.' })
      if (value !== undefined && secret === undefined && seemsSecret(key, value))
        faults.push({
          path,
          message:
            'looks like a secret. Write { secret: true } and give its value with --secrets, or add secret: false.',
        })
    }
  }
  const mountFault = ({ volume, content, file: path, mode, read_only }: Mount): string | undefined => {
    const given = [volume, content, path].filter((one) => one !== undefined).length
    if (given !== 1) return 'needs one of volume, content and file.'
    if (volume !== undefined && mode !== undefined) return 'has a mode, which is for files; use read_only.'
    if (volume === undefined && read_only !== undefined)
      return 'has read_only, which is for volumes; use mode.'
    if (volume !== undefined && file.volumes && !own(file.volumes, volume))
      return `names ${volume}, which is no volume of this file.`
    return undefined
  }
  look('', file.variables)
  for (const [name, app] of Object.entries(file.apps ?? {})) {
    look(`apps.${name}.`, app.variables)
    for (const [path, mount] of Object.entries(app.mounts ?? {})) {
      const message = mountFault(mount)
      if (message) faults.push({ path: `apps.${name}.mounts.${path}`, message })
    }
    for (const database of Object.keys(app.databases ?? {}))
      if (file.databases && !own(file.databases, database))
        faults.push({
          path: `apps.${name}.databases.${database}`,
          message: 'is no database of this file.',
        })
  }
  return faults
}

/** Reads `portreeve.yaml`. Throws a `ProjectFileError` that says where and what. */
export function readProjectFile(text: string): ProjectFile {
  if (!isModestYaml(text, LIMITS))
    return refuse('The file has too many lines, too long ones, or too many levels.')
  const document = parseDocument(text, { logLevel: 'silent', prettyErrors: true, stringKeys: true })
  const [problem] = [...document.errors, ...document.warnings]
  if (problem)
    return refuse(
      `The file is not valid YAML${problem.linePos ? ` (line ${problem.linePos[0].line})` : ''}: ${(problem.message.split('\n')[0] ?? '').replace(/ at line \d+.*$/, '')}`,
    )
  let tree: unknown
  try {
    tree = document.toJS({ maxAliasCount: MAX_ALIASES }) ?? {}
  } catch {
    return refuse(`The file uses aliases more than ${MAX_ALIASES} times.`)
  }
  if (!isTree(tree)) return refuse('The file must be a mapping, with fields such as apps and databases.')
  const parsed = v.safeParse(ProjectFile, expandFile(tree))
  const faults = parsed.success ? contradictions(parsed.output) : parsed.issues.slice(0, 20).map(sentenceOf)
  if (!parsed.success || faults.length > 0) throw new ProjectFileError(faults)
  const fault = unusable(tree)
  if (fault) return refuse(fault.reason, fault.path)
  return parsed.output
}
