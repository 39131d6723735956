import { existsSync } from 'node:fs'
import { chown, mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Run, RunResult } from '#server/kernel/process'
import { SpawnError } from '#server/kernel/process'
import type { ConnectProxy, ProxySession } from '#server/platform/outbound/connect-proxy'
import { OutboundError, type Dial, type OutboundPolicy } from '#server/platform/outbound/outbound'
import { aborted, timedOut, tooLarge } from './errors.ts'
import { explainFailure, explainRefusal } from './failure.ts'
import { GitError, type GitCredential } from './git.ts'
import type { GitUrl } from './parse-url.ts'
import { createRepository, type ObjectFormat } from './repository.ts'
import { gitEnvironment } from './settings.ts'
import { prepareSsh, type SshFiles } from './ssh.ts'
import { removeSession, type Identity } from './work-directory.ts'

export interface GitLimits {
  /** Wall time of one checkout or resolution. */
  timeout_ms: number
  /** Bytes that may be received, that may lie on disk while fetching, and that the files may have: each. */
  max_bytes: number
  max_files: number
  /** Bytes of all paths together, which are kept in memory while a build gets the files. */
  max_names_bytes: number
}

/** What every session shares. */
export interface SessionParts {
  run: Run
  policy: OutboundPolicy
  proxy: ConnectProxy
  dial: Dial
  /** Path that folders of sessions start with. */
  session_prefix: string
  /** Host keys of first contacts. */
  pins_directory: string
  limits: GitLimits
  ca_file?: string | undefined
  /** User that git runs as. */
  identity?: Identity | undefined
  /** Fills a repository that was just made with what is there already. */
  seed?: ((repository: string, format: ObjectFormat) => Promise<void>) | undefined
}

const SETPRIV = '/usr/bin/setpriv'
const PRLIMIT = '/usr/bin/prlimit'
const CHOOM = '/usr/bin/choom'
/**
 * Address space of one process of git. A small repository can be made so that walking it fills any memory.
 */
const MAX_MEMORY_BYTES = 4 * 1024 ** 3

/**
 * What a command runs under: it dies with the server, gains no privileges, and is held to memory and file
 * sizes by the kernel itself. Where the machine has no more memory, it is the first to go: what a hostile server
 * makes several of them take would else cost the largest app or database its life.
 * Where these tools of util-linux are missing, the limits of the session still hold.
 */
function confined(argv: readonly string[], max_bytes: number): readonly string[] {
  return [
    ...(existsSync(SETPRIV) ? [SETPRIV, '--no-new-privs', '--pdeathsig', 'KILL', '--'] : []),
    ...(existsSync(PRLIMIT)
      ? [PRLIMIT, `--as=${MAX_MEMORY_BYTES}`, `--fsize=${max_bytes}`, '--core=0', '--']
      : []),
    ...(existsSync(CHOOM) ? [CHOOM, '--adjust', '1000', '--'] : []),
    ...argv,
  ]
}

/** One run of git commands against one repository, in a folder of its own that is gone afterwards. */
export interface GitSession {
  readonly directory: string
  /** Where git works: `<directory>/repository`. */
  readonly repository: string
  /** Ends with the caller's signal, the time limit or the size limit. */
  readonly signal: AbortSignal
  /** Makes `repository` an empty one. */
  createRepository(format: ObjectFormat): Promise<void>
  /** Runs git; a failure is thrown as GitError unless `may_fail`. */
  git(args: readonly string[], options?: GitOptions): Promise<RunResult>
  /** Runs ssh with the session's settings. */
  ssh(args: readonly string[]): Promise<RunResult>
  /** Why the guard refused or lost the latest connection. */
  readonly refusal: OutboundError | undefined
  /** Ends everything with `error`, whatever runs. */
  stop(error: GitError): void
  close(): Promise<void>
}
export interface GitOptions {
  onLine?: (line: string) => void
  may_fail?: boolean
  max_output_bytes?: number
}

/** The line that git's own credential store reads. */
function credentialLine(url: GitUrl, credential: GitCredential | undefined): string {
  if (credential?.kind !== 'token' || url.protocol === 'ssh') return ''
  // GitHub, GitLab and Gitea take any name with a token; Bitbucket wants this one.
  const username = credential.username || (url.host === 'bitbucket.org' ? 'x-token-auth' : 'x-access-token')
  if (/[\p{Cc}]/u.test(username + credential.token)) {
    throw new GitError(
      'authentication',
      'The token of this repository holds control characters.',
      'Copy the token again, without line breaks.',
    )
  }
  const { host } = new URL(url.url)
  return `${url.protocol}://${encodeURIComponent(username)}:${encodeURIComponent(credential.token)}@${host}\n`
}

async function prepareFiles(
  parts: SessionParts,
  directory: string,
  files: Record<string, string>,
): Promise<void> {
  const own = async (path: string) => {
    if (parts.identity) await chown(path, parts.identity.uid, parts.identity.gid)
  }
  const folders = ['home', 'repository'].map(async (name) => {
    await mkdir(join(directory, name), { mode: 0o755 })
    await own(join(directory, name))
  })
  const written = Object.entries(files).map(async ([name, content]) => {
    await writeFile(join(directory, name), content, { mode: 0o600, flag: 'wx' })
    await own(join(directory, name))
  })
  await Promise.all([...folders, ...written])
  await own(directory)
}

/** Finds the one checked address that ssh will connect to, by connecting to it once. */
async function checkedAddress(
  { dial, limits }: SessionParts,
  url: GitUrl,
  signal: AbortSignal,
): Promise<string> {
  try {
    const socket = await dial(url.host, url.port, { signal })
    const address = socket.remoteAddress
    socket.destroy()
    if (!address) throw new OutboundError('unreachable', 'The connection was closed.')
    return address
  } catch (error) {
    if (error instanceof OutboundError && error.code !== 'aborted')
      throw explainRefusal(error, url.host, limits.max_bytes)
    throw error
  }
}

/** The deadline, the caller's wish and the size limit as one signal that knows why it fired. */
function createEnd(url: GitUrl, limits: GitLimits, signal: AbortSignal) {
  const own = new AbortController()
  const timer = setTimeout(() => own.abort(timedOut(url.host, limits.timeout_ms)), limits.timeout_ms)
  const onAbort = (): void => own.abort(aborted())
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  return {
    signal: own.signal,
    stop: (error: GitError) => own.abort(error),
    release(): void {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    },
  }
}

const notInstalled = (program: string, cause?: unknown) =>
  new GitError(
    'failed',
    `The program ${program} cannot be started on this server.`,
    `Install ${program} on the server, then try again.`,
    { cause },
  )

/** Opens a session: folder, files, guard and signal. Whatever happens later, `close` removes them all. */
export async function openSession(
  parts: SessionParts,
  url: GitUrl,
  credential: GitCredential | undefined,
  caller: AbortSignal,
): Promise<GitSession> {
  const end = createEnd(url, parts.limits, caller)
  let directory: string | undefined
  let guard: ProxySession | undefined
  const close = async (): Promise<void> => {
    end.release()
    guard?.close()
    if (directory) await removeSession(directory)
  }
  try {
    end.signal.throwIfAborted()
    if (credential && (credential.kind === 'ssh') !== (url.protocol === 'ssh')) {
      throw new GitError(
        'authentication',
        credential.kind === 'ssh'
          ? 'A deploy key does not fit an https address.'
          : 'An access token does not fit an ssh address.',
        credential.kind === 'ssh'
          ? 'Use the ssh address of the repository, or an access token.'
          : 'Use the https address of the repository, or a deploy key.',
      )
    }
    const line = credentialLine(url, credential)
    const ssh: SshFiles | undefined =
      url.protocol === 'ssh'
        ? await prepareSsh(
            url,
            await checkedAddress(parts, url, end.signal),
            credential,
            parts.pins_directory,
          )
        : undefined
    directory = await mkdtemp(parts.session_prefix)
    await prepareFiles(parts, directory, { credentials: line, ...(ssh?.files ?? {}) })
    guard = url.protocol === 'ssh' ? undefined : parts.proxy.open({ max_bytes: parts.limits.max_bytes })
    const env = gitEnvironment(url, {
      session_directory: directory,
      proxy_url: guard?.url,
      ca_file: parts.ca_file,
      has_credential: line !== '',
    })
    return createSession({
      parts,
      url,
      has_credential: credential !== undefined,
      directory,
      guard,
      env,
      ssh,
      end,
      close,
    })
  } catch (error) {
    await close()
    throw end.signal.aborted ? end.signal.reason : error
  }
}

interface SessionState {
  parts: SessionParts
  url: GitUrl
  has_credential: boolean
  directory: string
  guard: ProxySession | undefined
  env: Record<string, string>
  ssh: SshFiles | undefined
  end: ReturnType<typeof createEnd>
  close(): Promise<void>
}

function createSession({
  parts,
  url,
  has_credential,
  directory,
  guard,
  env,
  ssh,
  end,
  close,
}: SessionState): GitSession {
  const repository = join(directory, 'repository')
  const { max_bytes, timeout_ms } = parts.limits
  const running = new Set<Promise<unknown>>()

  /** Runs a command that ends at the latest with the session. */
  function start(argv: readonly string[], { onLine, max_output_bytes }: GitOptions): Promise<RunResult> {
    const work = parts.run(confined(argv, max_bytes), {
      cwd: repository,
      env,
      signal: end.signal,
      timeout_ms: timeout_ms + 5_000,
      ...(onLine ? { onLine } : {}),
      ...(max_output_bytes ? { max_output_bytes } : {}),
      ...parts.identity,
    })
    const settled = work.catch(() => {}).finally(() => running.delete(settled))
    running.add(settled)
    return work
  }

  async function execute(argv: readonly string[], options: GitOptions): Promise<RunResult> {
    end.signal.throwIfAborted()
    const result = await start(argv, options).catch((error: unknown) => {
      if (error instanceof SpawnError) throw notInstalled(argv[0]!, error)
      throw error
    })
    await ssh?.remember(directory)
    end.signal.throwIfAborted()
    if (guard?.failure?.code === 'too_large') throw tooLarge(max_bytes)
    if (/^(setpriv|prlimit|choom): failed to execute/m.test(result.stderr)) throw notInstalled(argv[0]!)
    if (result.exit_code !== 0 && !options.may_fail)
      throw explainFailure({
        stderr: result.stderr,
        host: url.host,
        has_credential,
        max_bytes,
        refusal: guard?.failure,
      })
    return result
  }

  return {
    directory,
    repository,
    signal: end.signal,
    stop: end.stop,
    async close() {
      // A command that still runs would outlive its folder and the reason for it.
      end.stop(aborted())
      await Promise.all(running)
      await close()
    },
    get refusal() {
      return guard?.failure
    },
    async createRepository(format) {
      await createRepository(repository, format, parts.identity)
      await parts.seed?.(repository, format)
    },
    git: (args, options = {}) => execute(['git', ...args], options),
    ssh: (args) => execute(['ssh', '-F', '../ssh_config', ...args], {}),
  }
}
