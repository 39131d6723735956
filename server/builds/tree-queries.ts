import { posix } from 'node:path'
import type { SourceTree } from './plan.ts'

/** Source code is only ever skimmed: what decides a start command stands near the top of an entry file. */
const SKIM_CHARACTERS = 64 * 1024

/** The first of these paths that exists. */
export function firstOf(tree: SourceTree, paths: readonly string[]): string | undefined {
  return paths.find((path) => tree.has(path))
}

/** Files directly inside a folder; the root is the empty string. Names keep the folder in front. */
export function filesIn(tree: SourceTree, folder = ''): string[] {
  const prefix = folder === '' ? '' : `${folder}/`
  return tree.files().filter((path) => path.startsWith(prefix) && !path.slice(prefix.length).includes('/'))
}

/** Files at most `depth` folders below the root, by suffix, shallow ones first. */
export function filesWithSuffix(tree: SourceTree, suffixes: readonly string[], depth: number): string[] {
  return tree
    .files()
    .filter((path) => suffixes.some((suffix) => path.endsWith(suffix)) && depthOf(path) <= depth)
    .sort((a, b) => depthOf(a) - depthOf(b) || compare(a, b))
}

/** Files of one exact name at most `depth` folders below the root, shallow ones first. */
export function filesNamed(tree: SourceTree, name: string, depth: number): string[] {
  return filesWithSuffix(tree, [name], depth).filter((path) => posix.basename(path) === name)
}

/** Whether any file lies below the folder. */
export function hasFolder(tree: SourceTree, folder: string): boolean {
  return tree.files().some((path) => path.startsWith(`${folder}/`))
}

/** The beginning of a source file, or the empty string. */
export function skim(tree: SourceTree, path: string | undefined): string {
  return path === undefined ? '' : (tree.read(path)?.slice(0, SKIM_CHARACTERS) ?? '')
}

/** First line without blanks and comments, as version files have it. */
export function firstLine(tree: SourceTree, path: string): string | undefined {
  const line = tree
    .read(path)
    ?.slice(0, 4096)
    .split('\n')
    .map((text) => text.trim())
    .find((text) => text !== '' && !text.startsWith('#'))
  return line === '' ? undefined : line
}

/** Folder of a path; the root is the empty string. */
export function folderOf(path: string): string {
  const folder = posix.dirname(path)
  return folder === '.' ? '' : folder
}

/** Joins without a leading `./`. */
export function joinPath(...parts: string[]): string {
  const path = posix.join(...parts.filter((part) => part !== ''), '')
  return path === '.' ? '' : path
}

function depthOf(path: string): number {
  return path.split('/').length - 1
}

/** Byte order, the same on every machine. */
export function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
