import { GitError } from './git.ts'

/**
 * Every failure that a user can meet, written once, so that the real and the fake adapter say the
 * same. `host` and `branch` are shown as they are: callers pass checked values only.
 */

/** A name from outside, safe to put into a sentence: no control characters, not longer than a line. */
export function quote(text: string, max = 100): string {
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '?')
  return clean.length > max ? `${clean.slice(0, max - 1)}…` : clean
}

/** "main, develop and 3 more": at most five names. */
function some(names: readonly string[]): string {
  const shown = names
    .slice(0, 5)
    .map((name) => quote(name, 60))
    .join(', ')
  return names.length > 5 ? `${shown} and ${names.length - 5} more` : shown
}

export const emptyRepository = () =>
  new GitError(
    'empty',
    'The repository has no commits yet.',
    'Push at least one commit to it, then deploy again.',
  )

export function branchNotFound(branch: string, existing: readonly string[]): GitError {
  return new GitError(
    'branch_not_found',
    `The branch "${quote(branch)}" does not exist in the repository.`,
    existing.length === 0
      ? 'The repository has no branches; push one first.'
      : `Choose a branch that exists: ${some(existing)}.`,
  )
}

export const commitNotFound = (commit: string) =>
  new GitError(
    'commit_not_found',
    `The commit ${quote(commit, 64)} was not found in the repository.`,
    'Check the id; give all 40 characters when the commit is old, and push it when it exists only on your machine.',
  )

/**
 * Forges answer the same for a repository that is private and one that is absent, so the sentence
 * names both.
 */
export const authenticationNeeded = (host: string) =>
  new GitError(
    'authentication',
    `The repository on ${quote(host)} is private or does not exist.`,
    'Check the address; when the repository is private, add an access token or a deploy key that may read it.',
  )

export const authenticationRefused = (host: string) =>
  new GitError(
    'authentication',
    `${quote(host)} refused the credential of this repository.`,
    'Check that the token or deploy key is valid, has not expired and may read this repository.',
  )

export const repositoryNotFound = (host: string) =>
  new GitError(
    'not_found',
    `There is no Git repository at this address on ${quote(host)}.`,
    'Check the address: open it in a browser, and copy the clone address that it shows.',
  )

export const unreachable = (host: string, reason: string) =>
  new GitError(
    'unreachable',
    `${quote(host)} cannot be reached: ${reason}.`,
    'Check the address and that the host is up and reachable from this server, then try again.',
  )

export const aborted = () =>
  new GitError('aborted', 'Reading the repository was cancelled.', 'Start it again when you want to go on.')

export const timedOut = (host: string, timeout_ms: number) =>
  new GitError(
    'timeout',
    `Reading the repository from ${quote(host)} took longer than ${Math.round(timeout_ms / 1000)} seconds.`,
    'Try again; when the repository is very large, remove large files from it or raise the limit.',
  )

export function tooLarge(max_bytes: number): GitError {
  return new GitError(
    'too_large',
    `The repository is larger than ${Math.floor(max_bytes / 1024 ** 2)} MiB.`,
    'Remove large files from the branch (or store them outside of Git), or raise the limit.',
  )
}

export const pathTooLong = (what: 'a path' | 'paths', max_bytes: number) =>
  new GitError(
    'too_many_files',
    `The repository has ${what} of more than ${max_bytes} bytes.`,
    'Move what lies so deep in folders, or give it shorter names.',
  )

export const badName = (path: string, why: string) =>
  new GitError(
    'bad_name',
    `A name in the repository ${why}: ${quote(path, 200)}.`,
    'Rename it with git mv, commit that and deploy again.',
  )

export const tooManyFiles = (max_files: number) =>
  new GitError(
    'too_many_files',
    `The repository has more than ${max_files} files and folders.`,
    'Remove generated files and dependencies such as node_modules from the branch, or raise the limit.',
  )
