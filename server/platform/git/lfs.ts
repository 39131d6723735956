import { createHash } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { open, readdir, readFile, rename, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { firstBytes } from '#server/kernel/first-bytes'
import { JsonError, parseForeignJson, shaped } from '#server/kernel/json'
import type { GuardedClient } from '#server/platform/outbound/client'
import { OutboundError } from '#server/platform/outbound/outbound'
import { authenticationRefused, quote, tooLarge } from './errors.ts'
import { explainRefusal } from './failure.ts'
import { GitError, type GitCredential } from './git.ts'
import type { GitUrl } from './parse-url.ts'
import type { GitSession } from './session.ts'

interface Pointer {
  oid: string
  size: number
  paths: string[]
}
interface Endpoint {
  href: string
  headers: Record<string, string>
}
interface Download {
  href: string
  headers: Record<string, string>
}

/** What is read of the answer to a question for downloads. */
const Batch = v.object({
  objects: v.array(
    v.object({
      oid: v.string(),
      error: v.nullish(v.object({ message: v.nullish(v.string()) })),
      actions: v.nullish(
        v.object({
          download: v.nullish(
            v.object({ href: v.string(), header: v.nullish(v.record(v.string(), v.unknown()), {}) }),
          ),
        }),
      ),
    }),
  ),
})
const POINTER =
  /^version https:\/\/git-lfs\.github\.com\/spec\/v1\n(?:[a-z0-9.-]+ .*\n)*?oid sha256:([0-9a-f]{64})\nsize (\d{1,15})\n?/
const MEDIA_TYPE = 'application/vnd.git-lfs+json'
const BATCH_SIZE = 100
const MAX_POINTER_BYTES = 1024
const MAX_ATTRIBUTES_BYTES = 1024 ** 2

const failed = (message: string, options?: ErrorOptions) =>
  new GitError(
    'failed',
    message,
    'Run git lfs fetch --all and git lfs push --all in your copy of the repository, then try again.',
    options,
  )

/** Finds the small files that stand for large ones. */
async function findPointers(root: string, signal: AbortSignal): Promise<Map<string, Pointer>> {
  const pointers = new Map<string, Pointer>()
  const visit = async (directory: string): Promise<void> => {
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      signal.throwIfAborted()
      const path = join(directory, entry.name)
      if (entry.isDirectory()) await visit(path)
      else if (entry.isFile() && (await stat(path)).size < MAX_POINTER_BYTES) {
        const match = POINTER.exec(await readFile(path, 'utf8'))
        if (!match) continue
        const known = pointers.get(match[1]!)
        if (known) known.paths.push(path)
        else pointers.set(match[1]!, { oid: match[1]!, size: Number(match[2]), paths: [path] })
      }
    }
  }
  await visit(root)
  return pointers
}

/**
 * True when the repository stores files with LFS, as the beginning of one of its files of attributes says. A link
 * in the place of one is none of git's either.
 */
export async function usesLfs(attributes: readonly string[]): Promise<boolean> {
  for (const path of attributes) if (await namesLfs(path)) return true
  return false
}

async function namesLfs(path: string): Promise<boolean> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW
  const file = await open(path, flags).catch(() => undefined)
  if (!file) return false
  const head = await firstBytes(file.createReadStream(), MAX_ATTRIBUTES_BYTES).catch(() => undefined)
  return /filter=lfs\b/.test(head?.bytes.toString('latin1') ?? '')
}

/**
 * Where the files are. Over ssh the host is asked, as git-lfs does it; it answers with an address and a
 * short-lived header.
 */
async function endpointOf(
  session: GitSession,
  url: GitUrl,
  credential: GitCredential | undefined,
): Promise<Endpoint> {
  if (url.protocol !== 'ssh') {
    const headers: Record<string, string> = {}
    if (credential?.kind === 'token')
      headers.authorization = `Basic ${Buffer.from(`${credential.username || 'x-access-token'}:${credential.token}`).toString('base64')}`
    return { href: `${url.url.replace(/\.git$/, '')}.git/info/lfs`, headers }
  }
  const { stdout } = await session.ssh([
    '-p',
    String(url.port),
    `${url.user}@${url.host}`,
    'git-lfs-authenticate',
    url.path,
    'download',
  ])
  try {
    const { href, header = {} } = parseForeignJson(stdout) as {
      href?: unknown
      header?: Record<string, unknown>
    }
    if (typeof href === 'string') return { href: href.replace(/\/$/, ''), headers: textsOf(header) }
  } catch {
    // Answered below: an old or foreign server prints something else than JSON.
  }
  throw new GitError(
    'failed',
    `${quote(url.host)} does not offer Git LFS over ssh.`,
    'Use the https address of the repository with an access token.',
  )
}

const textsOf = (record: Record<string, unknown>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(record).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )

/** Asks for the download addresses of up to a hundred objects. */
async function askBatch(
  client: GuardedClient,
  endpoint: Endpoint,
  host: string,
  desired: Pointer[],
  signal: AbortSignal,
): Promise<Map<string, Download>> {
  const answer = await client.send(`${endpoint.href}/objects/batch`, {
    method: 'POST',
    headers: { ...endpoint.headers, accept: MEDIA_TYPE, 'content-type': MEDIA_TYPE },
    signal,
    timeout_ms: 30_000,
    max_redirects: 3,
    body: JSON.stringify({
      operation: 'download',
      transfers: ['basic'],
      objects: desired.map(({ oid, size }) => ({ oid, size })),
    }),
  })
  if (answer.status === 401 || answer.status === 403) throw authenticationRefused(host)
  if (answer.status !== 200)
    throw failed(`${quote(host)} did not list the large files of the repository (status ${answer.status}).`)
  const told = shaped(Batch, parseForeignJson(await answer.text()))
  if (!told) throw new SyntaxError('not an answer of Git LFS')
  const downloads = new Map<string, Download>()
  for (const { oid, error, actions } of told.objects) {
    if (error)
      throw failed(
        `A large file of the repository is missing on ${quote(host)}: ${quote(error.message ?? 'no reason given', 150)}.`,
      )
    if (actions?.download)
      downloads.set(oid, {
        href: actions.download.href,
        headers: textsOf(actions.download.header),
      })
  }
  return downloads
}

/** Downloads one object, checks its hash, and puts it in the pointer's place. */
async function replacePointer(
  client: GuardedClient,
  partial: string,
  pointer: Pointer,
  download: Download,
  timeout_ms: number,
  signal: AbortSignal,
): Promise<void> {
  const [first, ...others] = pointer.paths as [string, ...string[]]
  const answer = await client.send(download.href, {
    headers: download.headers,
    signal,
    timeout_ms,
    max_bytes: pointer.size,
    max_redirects: 3,
  })
  if (answer.status !== 200)
    throw failed(`A large file of the repository could not be downloaded (status ${answer.status}).`)
  await write(partial, first, answer.body, pointer)
  for (const path of others) await write(partial, path, createReadStream(first), pointer)
}

async function write(
  partial: string,
  path: string,
  content: AsyncIterable<Uint8Array>,
  { oid }: Pointer,
): Promise<void> {
  const { mode } = await stat(path)
  const hash = createHash('sha256')
  const file = await open(partial, 'wx', mode & 0o777)
  try {
    for await (const chunk of content) {
      hash.update(chunk)
      await file.write(chunk)
    }
    if (hash.digest('hex') !== oid)
      throw failed(
        'A large file of the repository arrived damaged: its hash is not the one that the repository names.',
      )
    await file.chmod(mode & 0o777)
    await file.close()
    await rename(partial, path)
  } catch (error) {
    await file.close().catch(() => {})
    await unlink(partial).catch(() => {})
    throw error
  }
}

/**
 * Replaces LFS pointers by their files. Done here and not by git-lfs, whose downloads would go to any address
 * that a server names; here every address is checked, and nothing needs to be installed.
 */
export async function fetchLfs(
  client: GuardedClient,
  session: GitSession,
  url: GitUrl,
  credential: GitCredential | undefined,
  limits: { max_bytes: number; timeout_ms: number },
  onLog: (line: string) => void,
): Promise<void> {
  const pointers = [...(await findPointers(session.repository, session.signal)).values()]
  if (pointers.length === 0) return
  const total = pointers.reduce((sum, { size, paths }) => sum + size * paths.length, 0)
  if (total > limits.max_bytes) throw tooLarge(limits.max_bytes)
  onLog(
    `Downloading ${pointers.length} large file${pointers.length === 1 ? '' : 's'} (${Math.ceil(total / 1024)} KiB) from Git LFS.`,
  )
  // Beside the repository: in it any name may be taken, or be too long already.
  const partial = join(session.directory, 'large-file')
  try {
    const endpoint = await endpointOf(session, url, credential)
    for (let start = 0; start < pointers.length; start += BATCH_SIZE) {
      const expected = pointers.slice(start, start + BATCH_SIZE)
      const downloads = await askBatch(client, endpoint, url.host, expected, session.signal)
      for (const pointer of expected) {
        const download = downloads.get(pointer.oid)
        if (!download) throw failed(`A large file of the repository is missing on ${quote(url.host)}.`)
        await replacePointer(client, partial, pointer, download, limits.timeout_ms, session.signal)
      }
    }
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof JsonError)
      throw failed(`${quote(url.host)} does not offer Git LFS at this address.`, { cause: error })
    if (error instanceof OutboundError && error.code !== 'aborted')
      throw explainRefusal(error, url.host, limits.max_bytes)
    throw error
  }
}
