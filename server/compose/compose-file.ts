import { posix } from 'node:path'
import type { ComposeFiles } from './model.ts'

/** Names under which a file is looked for, as the specification has them, the preferred one first. */
const USUAL = ['compose.yaml', 'compose.yml', 'docker-compose.yaml', 'docker-compose.yml'] as const

export interface ComposeSource {
  /** Text of the file, where it is no file of a repository. */
  compose: string | null
  /** Path of the file in the repository; null for one of the usual names. */
  compose_path: string | null
}

/** The compose file of an app: its text, undefined where there is none, and its folder in the repository. */
export function composeFileOf(
  { compose, compose_path }: ComposeSource,
  files: ComposeFiles | undefined,
): { text: string | undefined; directory: string; path: string | null } {
  if (compose !== null) return { text: compose, directory: '.', path: null }
  const path = compose_path ?? USUAL.find((name) => files?.files().includes(name)) ?? null
  const text = path === null ? undefined : files?.read(posix.normalize(path))
  return { text, directory: path === null ? '.' : posix.dirname(posix.normalize(path)), path: compose_path }
}
