import { createHash } from 'node:crypto'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { dirname, resolve, sep } from 'node:path'
import {
  aborted,
  authenticationNeeded,
  authenticationRefused,
  branchNotFound,
  commitNotFound,
  emptyRepository,
  repositoryNotFound,
} from './errors.ts'
import type { Checkout, Git, GitCredential, GitError, GitSource } from './git.ts'

/** Files of a commit by their path; `null` removes a file that the branch had before. */
export type FakeFiles = Record<string, string | Uint8Array | null>

/** Repositories in memory, **for tests only**. Nothing is read over a network. */
export interface FakeGit extends Git {
  /** Creates a repository without commits; `commit` creates one by itself. */
  createRepository(url: string): void
  /**
   * Adds a commit on top of the branch (created from nothing when absent) and returns its sha.
   * The first branch of a repository is its HEAD.
   */
  commit(url: string, branch: string, files: FakeFiles, message?: string, author?: string): string
  /** From now on the repository is private: only this credential may read it. */
  protect(url: string, credential: GitCredential): void
  /** Every call for this address fails with `error`; `undefined` heals it. */
  fail(url: string, error: GitError | undefined): void
  /** While held, calls for this address wait (until aborted); the returned function lets them go on. */
  hold(url: string): () => void
  deleteBranch(url: string, branch: string): void
  deleteRepository(url: string): void
  /** Every call so far, in order. */
  readonly calls: readonly { method: 'resolve' | 'checkout'; source: GitSource }[]
}

interface FakeCommit {
  sha: string
  files: Map<string, Uint8Array>
  message: string
  author: string
  committed_at: string
}
interface FakeRepository {
  commits: Map<string, FakeCommit>
  branches: Map<string, string>
  head: string
  credential?: GitCredential
  error?: GitError
  held?: { promise: Promise<void>; release: () => void }
}

const hostOf = (url: string): string =>
  URL.canParse(url) ? new URL(url).host : (url.split(/[@:]/)[1] ?? url)

function refuseStranger(repository: FakeRepository, { url, credential }: GitSource): void {
  const desired = repository.credential
  if (!desired) return
  if (!credential) throw authenticationNeeded(hostOf(url))
  const secret = (value: GitCredential) => (value.kind === 'token' ? value.token : value.private_key)
  if (credential.kind !== desired.kind || secret(credential) !== secret(desired))
    throw authenticationRefused(hostOf(url))
}

/** Waits while the repository is held; an abort ends the waiting. */
async function waitWhileHeld(repository: FakeRepository | undefined, signal: AbortSignal): Promise<void> {
  if (signal.aborted) throw aborted()
  if (!repository?.held) return
  const cancelled = new AbortController()
  await Promise.race([
    repository.held.promise,
    new Promise<void>((_, reject) => {
      signal.addEventListener('abort', () => reject(aborted()), {
        once: true,
        signal: cancelled.signal,
      })
    }),
  ]).finally(() => cancelled.abort())
}

function findCommit(repository: FakeRepository, source: GitSource): { branch: string; commit: FakeCommit } {
  const branch = source.branch ?? repository.head
  if (source.commit) {
    const prefix = source.commit.toLowerCase()
    const found = [...repository.commits.values()].filter(({ sha }) => sha.startsWith(prefix))
    if (found.length !== 1) throw commitNotFound(source.commit)
    return { branch, commit: found[0]! }
  }
  const sha = repository.branches.get(branch)
  if (!sha) throw branchNotFound(branch, [...repository.branches.keys()].sort())
  return { branch, commit: repository.commits.get(sha)! }
}

async function writeFiles(directory: string, files: ReadonlyMap<string, Uint8Array>): Promise<void> {
  await mkdir(directory, { recursive: true })
  for (const [path, content] of files) {
    const target = resolve(directory, path)
    if (!target.startsWith(resolve(directory) + sep))
      throw new Error(`The fake file ${path} is outside of the folder.`)
    await mkdir(dirname(target), { recursive: true })
    await writeFile(target, content)
  }
}

/** Creates a Git without any repository. */
export function createFakeGit(): FakeGit {
  const repositories = new Map<string, FakeRepository>()
  const calls: { method: 'resolve' | 'checkout'; source: GitSource }[] = []
  let seconds = Date.UTC(2026, 0, 1) / 1000

  const ensure = (url: string): FakeRepository => {
    const known = repositories.get(url)
    if (known) return known
    const created: FakeRepository = { commits: new Map(), branches: new Map(), head: '' }
    repositories.set(url, created)
    return created
  }

  async function open(method: 'resolve' | 'checkout', source: GitSource, signal: AbortSignal) {
    calls.push({ method, source })
    const repository = repositories.get(source.url)
    await waitWhileHeld(repository, signal)
    if (!repository) throw repositoryNotFound(hostOf(source.url))
    if (repository.error) throw repository.error
    refuseStranger(repository, source)
    if (repository.commits.size === 0) throw emptyRepository()
    return findCommit(repository, source)
  }

  return {
    calls,
    createRepository: (url) => void ensure(url),
    commit(url, branch, files, message = 'A commit', author = 'Ada Lovelace') {
      const repository = ensure(url)
      const parent = repository.commits.get(repository.branches.get(branch) ?? '')
      const tree = new Map(parent?.files)
      for (const [path, content] of Object.entries(files)) {
        if (content === null) tree.delete(path)
        else tree.set(path, typeof content === 'string' ? new TextEncoder().encode(content) : content)
      }
      seconds += 1
      const sha = createHash('sha1')
        .update([url, branch, parent?.sha, message, author, seconds].join('\n'))
        .digest('hex')
      repository.commits.set(sha, {
        sha,
        files: tree,
        message,
        author,
        committed_at: new Date(seconds * 1000).toISOString(),
      })
      repository.branches.set(branch, sha)
      if (repository.head === '') repository.head = branch
      return sha
    },
    protect(url, credential) {
      ensure(url).credential = credential
    },
    fail(url, error) {
      ensure(url).error = error
    },
    hold(url) {
      const repository = ensure(url)
      const { promise, resolve: release } = Promise.withResolvers<void>()
      repository.held = { promise, release }
      return () => {
        repository.held = undefined
        release()
      }
    },
    deleteBranch: (url, branch) => void repositories.get(url)?.branches.delete(branch),
    deleteRepository: (url) => void repositories.delete(url),

    forget: async () => {},
    pruneMirrors: async () => {},
    async resolve(source, signal) {
      const { branch, commit } = await open('resolve', source, signal)
      return { branch, sha: commit.sha }
    },
    async checkout(source, directory, options, signal): Promise<Checkout> {
      options.onLog(`Reading ${source.url}`)
      if ((await readdir(directory).catch(() => [])).length > 0)
        throw new Error(`The folder ${directory} is not empty.`)
      const { branch, commit } = await open('checkout', source, signal)
      await writeFiles(directory, commit.files).catch(async (error: unknown) => {
        await rm(directory, { recursive: true, force: true })
        throw error
      })
      const size_bytes = [...commit.files.values()].reduce((sum, content) => sum + content.byteLength, 0)
      const message = commit.message.split('\n')[0]!.slice(0, 200)
      return {
        branch,
        sha: commit.sha,
        message,
        author: commit.author,
        committed_at: commit.committed_at,
        files: commit.files.size,
        size_bytes,
      }
    },
  }
}
