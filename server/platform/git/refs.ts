import { GitError } from './git.ts'

const refuse = (message: string) =>
  new GitError(
    'branch_not_found',
    message,
    'Give the name of a branch or tag as git shows it, such as main or feature/login.',
  )
const encoder = new TextEncoder()

/**
 * Checks the name of a branch or tag by git's own rules and a few stricter ones: nothing that a shell, a log
 * or a command line could read as something else. Throws GitError with a sentence for the user; returns the
 * name.
 */
export function checkRef(name: string): string {
  if (typeof name !== 'string' || name === '') throw refuse('The name of the branch is empty.')
  if (encoder.encode(name).length > 255) throw refuse('The name of the branch is longer than 255 bytes.')
  if (/[\p{Cc}\p{Cf}\p{Zs}\p{Zl}\p{Zp}\p{Cs}]/u.test(name))
    throw refuse('The name of the branch holds spaces, control or invisible characters.')
  if (name.startsWith('-')) throw refuse('The name of the branch must not start with "-".')
  if (/[~^:?*[\\$`;|&<>"'(){}!]/.test(name))
    throw refuse('The name of the branch holds characters that are not allowed.')
  if (name.includes('..') || name.includes('@{') || name.includes('//'))
    throw refuse('The name of the branch must not contain ".." or "//".')
  if (name === '@' || name === 'HEAD' || name.startsWith('refs/'))
    throw refuse('Give the short name of the branch, not HEAD or a full reference.')
  if (name.startsWith('/') || name.endsWith('/') || name.endsWith('.'))
    throw refuse('The name of the branch must not start with "/" or end with "/" or ".".')
  for (const part of name.split('/')) {
    if (part.startsWith('.') || part.endsWith('.lock'))
      throw refuse('No part of the name of the branch may start with "." or end with ".lock".')
  }
  return name
}

/** Whether `checkRef` would take it. */
export function isRef(name: string): boolean {
  try {
    return checkRef(name) === name
  } catch {
    return false
  }
}

/**
 * Checks a commit id: 7 to 40 hexadecimal digits (64 for repositories with SHA-256). Returns it in lower
 * case.
 */
export function checkCommit(id: string): string {
  if (typeof id === 'string' && (/^[0-9a-f]{7,40}$/i.test(id) || /^[0-9a-f]{64}$/i.test(id)))
    return id.toLowerCase()
  throw new GitError(
    'commit_not_found',
    'The commit is not a commit id.',
    'Give 7 to 40 hexadecimal digits, as git log shows them.',
  )
}
