import { cp, mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { sparingReserve } from '#server/kernel/disk-reserve'
import { run as spawnRun, type Run } from '#server/kernel/process'
import { createGuardedClient, type GuardedClient } from '#server/platform/outbound/client'
import type { ConnectProxy } from '#server/platform/outbound/connect-proxy'
import { createDial } from '#server/platform/outbound/dial'
import type { OutboundPolicy } from '#server/platform/outbound/outbound'
import { quote, repositoryNotFound, tooLarge } from './errors.ts'
import { fetchBranch, fetchCommit } from './fetch.ts'
import { GitError, type Checkout, type CheckoutOptions, type Git, type GitSource } from './git.ts'
import { fetchLfs, usesLfs } from './lfs.ts'
import { checkCommit, checkRef, parseGitUrl, type GitUrl } from './parse-url.ts'
import { measure } from './measure.ts'
import { createMirrors, type Mirrors } from './mirrors.ts'
import { findTarget, type Target } from './remote.ts'
import { createRepository } from './repository.ts'
import { openSession, type GitLimits, type GitSession, type SessionParts } from './session.ts'
import { sweep } from './sweep.ts'
import { prepareSessions, type Identity } from './work-directory.ts'

export interface GitOptions {
  policy: OutboundPolicy
  proxy: ConnectProxy
  /**
   * Folder for what is in the making and for host keys; sessions left by a crash are removed at the first
   * use.
   */
  work_directory: string
  limits?: Partial<GitLimits>
  /** PEM file of the authorities that https hosts are checked against. Default: the system's. */
  ca_file?: string
  /** Authorities besides the built-in ones for LFS downloads, in PEM. */
  ca?: readonly string[]
  /** User that git runs as. Default: `nobody` (65534) when the server is root, else the server's own. */
  identity?: Identity | undefined
  /** Default: the kernel's. */
  run?: Run
  /** Whether nothing but the reserve is left on the disk of a folder. Default: as the system says. */
  isDiskFull?: (directory: string) => boolean
}

const NOBODY: Identity = { uid: 65534, gid: 65534 }
const DEFAULT_LIMITS: GitLimits = {
  timeout_ms: 600_000,
  max_bytes: 2 * 1024 ** 3,
  max_files: 200_000,
  max_names_bytes: 64 * 1024 ** 2,
}

interface Checked {
  url: GitUrl
  branch: string | undefined
  commit: string | undefined
}

/** A commit may name a year that no date of ours has. */
function timeOf(text: string): Date {
  const time = new Date(text)
  return Number.isNaN(time.getTime()) ? new Date(0) : time
}

/**
 * Full id, subject, author and time of a commit. Not by `git show`, which compares the whole tree even when
 * it prints none of it.
 */
async function describe(
  session: GitSession,
  revision: string,
): Promise<{ sha: string; message: string; author: string; committed_at: string }> {
  const { stdout } = await session.git([
    'rev-list',
    '--max-count=1',
    '--no-commit-header',
    '--format=%H%x00%an%x00%cI%x00%s',
    revision,
  ])
  const [sha = '', author = '', at = '', message = ''] = stdout.replace(/\n$/, '').split('\0')
  return {
    sha,
    author: quote(author, 200),
    message: quote(message, 200),
    committed_at: timeOf(at).toISOString(),
  }
}

/**
 * True when a host answers git's question with a web page; git itself takes some pages for an empty
 * repository.
 */
async function isWebPage(client: GuardedClient, url: GitUrl, signal: AbortSignal): Promise<boolean> {
  if (url.protocol === 'ssh') return false
  const answer = await client
    .send(`${url.url}/info/refs?service=git-upload-pack`, { signal, max_redirects: 3 })
    .catch(() => undefined)
  await answer?.discard()
  return answer?.status === 200 && !/^application\/x-git-/.test(answer.headers['content-type'] ?? '')
}

const mayBeOfMirror = (error: unknown): boolean =>
  !(error instanceof GitError) || error.code === 'failed' || error.code === 'too_large'

/** Puts the finished checkout in its place; another disk needs a copy. */
async function deliver(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true })
  try {
    await rename(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    try {
      await cp(from, to, { recursive: true, verbatimSymlinks: true })
    } catch (failure) {
      await rm(to, { recursive: true, force: true })
      throw failure
    }
  }
}

/**
 * Git over the command of that name, which never runs anything of a repository and connects only where the
 * policy allows.
 */
export function createGit(options: GitOptions): Git {
  const limits: GitLimits = { ...DEFAULT_LIMITS, ...options.limits }
  const usual = process.getuid?.() === 0 ? NOBODY : undefined
  const identity = 'identity' in options ? options.identity : usual
  const owner = identity ? { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 } : undefined
  const dial = createDial(options.policy)
  const mirrors = createMirrors(join(options.work_directory, 'mirrors'), identity)
  let prepared: Promise<string> | undefined
  let client: GuardedClient | undefined
  const http = (): GuardedClient =>
    (client ??= createGuardedClient(options.policy, options.ca ? { ca: options.ca } : {}))

  /** What could not be prepared is tried again by the next. */
  const prepare = (): Promise<string> =>
    prepareSessions(options.work_directory, identity).catch((error: unknown) => {
      prepared = undefined
      throw error
    })

  function check(source: GitSource): Checked {
    const url = parseGitUrl(source.url, options.policy)
    return {
      url,
      branch: source.branch === undefined ? undefined : checkRef(source.branch),
      commit: source.commit === undefined ? undefined : checkCommit(source.commit),
    }
  }

  async function withSession<T>(
    url: GitUrl,
    source: GitSource,
    signal: AbortSignal,
    work: (session: GitSession) => Promise<T>,
    seed?: SessionParts['seed'],
  ): Promise<T> {
    prepared ??= prepare()
    const parts: SessionParts = {
      run: options.run ?? spawnRun,
      policy: options.policy,
      proxy: options.proxy,
      dial,
      limits,
      identity,
      ca_file: options.ca_file,
      session_prefix: await prepared,
      pins_directory: join(options.work_directory, 'known_hosts'),
      seed,
    }
    const session = await openSession(parts, url, source.credential, signal)
    try {
      return await work(session)
    } catch (error) {
      if (session.signal.aborted) throw session.signal.reason
      if (
        error instanceof GitError &&
        error.code === 'empty' &&
        (await isWebPage(http(), url, session.signal))
      )
        throw repositoryNotFound(url.host)
      throw error
    } finally {
      await session.close()
    }
  }

  /** Fetches what is asked for; returns the branch and a revision that git understands. */
  async function fetchSource(
    session: GitSession,
    { url, branch, commit }: Checked,
    source: GitSource,
    onLog: CheckoutOptions['onLog'],
  ): Promise<{ branch: string; revision: string }> {
    const connection = {
      url: url.url,
      host: url.host,
      has_credential: source.credential !== undefined,
    }
    if (branch && !commit) {
      const revision = await fetchBranch(session, connection, branch, limits, onLog)
      if (revision) return { branch, revision }
    }
    const known: Pick<Target, 'branch' | 'ref'> & Partial<Target> =
      commit && branch ? { branch, ref: `refs/heads/${branch}` } : await findTarget(session, url.url, branch)
    const revision = await fetchCommit(
      session,
      { ...connection, commit: commit ?? known.sha!, ref: known.ref },
      limits,
      onLog,
    )
    return { branch: known.branch, revision }
  }

  /** A mirror that cannot be used is forgotten, and the repository is empty again. */
  async function seedMirror(...what: Parameters<Mirrors['seed']>): Promise<boolean> {
    try {
      return await mirrors.seed(...what)
    } catch {
      const [name, , repository, format] = what
      await mirrors.forget(name)
      await createRepository(repository, format, identity)
      return false
    }
  }

  /** A checkout does not fail because nothing can be kept of it. */
  const keepMirror = (name: string, ...what: [url: string, repository: string, tip: string]) =>
    mirrors.keep(name, ...what).catch(() => mirrors.forget(name))

  async function read(
    session: GitSession,
    checked: Checked,
    source: GitSource,
    directory: string,
    checkout: CheckoutOptions,
  ): Promise<Checkout> {
    const { branch, revision } = await fetchSource(session, checked, source, checkout.onLog)
    const commit = `${revision}^{commit}`
    const describing = describe(session, commit)
    describing.catch(() => {}) // It is awaited below, unless the repository is refused first.
    // Beside it: git reads all folders of a commit before it writes a file, which takes longer than to count
    // as many as are too many, and then the session ends.
    const writing = session.git(['checkout', '--quiet', '--force', '--detach', commit, '--'])
    writing.catch(() => {})
    const { submodules, ...size } = await measure(session, commit, limits)
    await writing
    const about = await describing
    if (checkout.mirror) await keepMirror(checkout.mirror, checked.url.url, session.repository, about.sha)
    const fetched = join(session.directory, 'fetched')
    await rename(join(session.repository, '.git'), fetched)
    const [{ size_bytes: written_bytes, attributes }] = await Promise.all([
      sweep(session.repository, owner, checkout.onLog, session.signal),
      rm(fetched, { recursive: true, force: true }),
    ])
    // Attributes may ask for another encoding, in which the same files are larger.
    if (written_bytes > limits.max_bytes) throw tooLarge(limits.max_bytes)
    if (submodules > 0)
      checkout.onLog(
        `The repository has ${submodules} submodule${submodules === 1 ? '' : 's'}; submodules are not fetched.`,
      )
    const large_files = await usesLfs(attributes)
    if (large_files && checkout.lfs) {
      await fetchLfs(http(), session, checked.url, source.credential, limits, checkout.onLog)
    } else if (large_files)
      checkout.onLog(
        'The repository stores large files with Git LFS; turn on LFS for this app to have them instead of their pointers.',
      )
    session.signal.throwIfAborted()
    await deliver(session.repository, directory)
    return { branch, ...about, ...size }
  }

  /**
   * Reads on top of what was fetched before. When that fails in a way that the mirror could be to blame for,
   * it is forgotten and everything is fetched anew.
   */
  async function readOnTop(
    checked: Checked,
    source: GitSource,
    directory: string,
    checkout: CheckoutOptions,
    signal: AbortSignal,
  ): Promise<Checkout> {
    const { mirror } = checkout
    let is_seeded = false
    const attempt = () =>
      withSession(
        checked.url,
        source,
        signal,
        (session) => read(session, checked, source, directory, checkout),
        mirror === undefined
          ? undefined
          : async (repository, format) => {
              is_seeded = await seedMirror(mirror, checked.url.url, repository, format)
            },
      )
    try {
      return await attempt()
    } catch (error) {
      if (mirror === undefined || !is_seeded || !mayBeOfMirror(error)) throw error
      await mirrors.forget(mirror)
      return attempt()
    }
  }

  return {
    forget: mirrors.forget,
    pruneMirrors: mirrors.prune,
    async resolve(source, signal) {
      const { url, branch } = check(source)
      const target = await withSession(url, source, signal, (session) => findTarget(session, url.url, branch))
      return { branch: target.branch, sha: target.sha }
    },
    async checkout(source, directory, checkout, signal) {
      const checked = check(source)
      const existing = await readdir(directory).catch(() => undefined)
      if (existing && existing.length > 0)
        throw new GitError('failed', 'The folder for the source is not empty.', 'Start the deployment again.')
      try {
        prepared ??= prepare()
        return await sparingReserve(
          signal,
          [options.work_directory, dirname(await prepared), dirname(directory)],
          (within) => readOnTop(checked, source, directory, checkout, within),
          options.isDiskFull,
        )
      } catch (error) {
        if (existing) await rmdir(directory).catch(() => {})
        throw error
      }
    },
  }
}
