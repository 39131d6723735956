import { spawn, execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/**
 * A file of a commit: its text, or with a mode (`100755`, `120000` for a link, `160000` for a submodule's
 * sha), or `null` to remove it.
 */
export type CommitFile =
  | string
  | Uint8Array
  | { mode: '100644' | '100755' | '120000' | '160000'; content: string | Uint8Array }
  | null
export interface BasicCredential {
  username: string
  password: string
}

/** One bare repository of the server. */
export interface GitRepository {
  /** Clone address. */
  readonly url: string
  /** Path of the bare repository on this machine. */
  readonly directory: string
  /** Adds a commit on top of `branch` (default `main`) and returns its sha. */
  commit(
    files: Record<string, CommitFile>,
    message?: string,
    options?: { branch?: string; author?: string },
  ): string
  /** Creates a branch or tag that points to a commit. */
  ref(name: `refs/${string}`, sha: string): void
  deleteBranch(branch: string): void
  /** Runs git in the bare repository and returns what it prints. */
  git(...args: string[]): string
}

export interface GitServer {
  /** `http://127.0.0.1:<port>` or `https://localhost:<port>`. */
  readonly url: string
  /** `127.0.0.1:<port>` or `localhost:<port>`, as PORTREEVE_ALLOWED_PRIVATE_HOSTS wants it. */
  readonly host: string
  /** Folder that holds the bare repositories. */
  readonly root: string
  /** PEM file of the throw-away authority, with `tls`. */
  readonly ca_file?: string
  /**
   * The repository of this name (such as `group/app`), created when absent; with `credential` only its owner
   * may read it.
   */
  repository(
    name: string,
    options?: { credential?: BasicCredential; object_format?: 'sha1' | 'sha256' },
  ): GitRepository
  /** Answers requests in place of git while set; returns false to let git answer. */
  intercept: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined
  /** `METHOD path` of every request so far. */
  readonly requests: readonly string[]
  close(): Promise<void>
}

/** Pushing needs this credential, whatever the repository. */
export const PUSH_CREDENTIAL: BasicCredential = { username: 'pusher', password: 'push-token' }

export interface GitServerOptions {
  /** Serve https with a certificate for `localhost` from an authority made for this server. */
  tls?: boolean
  /**
   * Speak protocol version 0 only, like old servers, which refuse to send a commit that is no branch's tip.
   */
  old_protocol?: boolean
  /** Address to listen on. Default 127.0.0.1; `0.0.0.0` serves containers, too. */
  listen?: string
}

const GIT_ENVIRONMENT = {
  PATH: process.env.PATH ?? '',
  HOME: '/nonexistent',
  LC_ALL: 'C',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_AUTHOR_NAME: 'Ada Lovelace',
  GIT_AUTHOR_EMAIL: 'ada@example.com',
  GIT_COMMITTER_NAME: 'Ada Lovelace',
  GIT_COMMITTER_EMAIL: 'ada@example.com',
}

/** The stream that `git fast-import` turns into a commit. */
function commitStream(
  branch: string,
  parent: string | undefined,
  files: Record<string, CommitFile>,
  message: string,
  author: string,
): Buffer {
  const chunks: Buffer[] = []
  const line = (text: string) => chunks.push(Buffer.from(`${text}\n`))
  const block = (content: string | Uint8Array) => {
    const bytes = Buffer.from(content as Uint8Array)
    line(`data ${bytes.length}`)
    chunks.push(bytes, Buffer.from('\n'))
  }
  const at = `${Math.floor(Date.now() / 1000)} +0000`
  line(`commit refs/heads/${branch}`)
  line(`author ${author} <ada@example.com> ${at}`)
  line(`committer ${author} <ada@example.com> ${at}`)
  block(message)
  if (parent) line(`from ${parent}`)
  for (const [path, file] of Object.entries(files)) {
    const quoted = `"${path.replace(/["\\]/g, '\\$&').replace(/\n/g, '\\n')}"`
    if (file === null) {
      line(`D ${quoted}`)
      continue
    }
    const { mode, content } =
      typeof file === 'string' || file instanceof Uint8Array ? { mode: '100644', content: file } : file
    if (mode === '160000') line(`M 160000 ${String(content)} ${quoted}`)
    else {
      line(`M ${mode} inline ${quoted}`)
      block(content)
    }
  }
  line('done')
  return Buffer.concat(chunks)
}

function openRepository(directory: string, url: string): GitRepository {
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', directory, ...args], {
      env: GIT_ENVIRONMENT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trim()
  const tip = (branch: string): string | undefined =>
    git('for-each-ref', '--format=%(objectname)', `refs/heads/${branch}`) || undefined
  return {
    url,
    directory,
    git,
    commit(files, message = 'A commit', { branch = 'main', author = 'Ada Lovelace' } = {}) {
      execFileSync('git', ['-C', directory, 'fast-import', '--quiet', '--done'], {
        env: GIT_ENVIRONMENT,
        input: commitStream(branch, tip(branch), files, message, author),
      })
      return tip(branch)!
    },
    ref: (name, sha) => void git('update-ref', name, sha),
    deleteBranch: (branch) => void git('update-ref', '-d', `refs/heads/${branch}`),
  }
}

/** Answers one request with the real `git http-backend`, as a web server runs a CGI program. */
function serveGit(
  root: string,
  old_protocol: boolean,
  request: IncomingMessage,
  response: ServerResponse,
  user: string,
): void {
  const url = new URL(request.url ?? '/', 'http://git')
  const header = (name: string) => String(request.headers[name] ?? '')
  const env: Record<string, string> = {
    ...GIT_ENVIRONMENT,
    GIT_PROJECT_ROOT: root,
    GIT_HTTP_EXPORT_ALL: '1',
    PATH_INFO: decodeURIComponent(url.pathname),
    QUERY_STRING: url.search.slice(1),
    REQUEST_METHOD: request.method ?? 'GET',
    CONTENT_TYPE: header('content-type'),
    REMOTE_ADDR: '127.0.0.1',
    REMOTE_USER: user,
    GIT_CONFIG_COUNT: '2',
    GIT_CONFIG_KEY_0: 'http.receivepack',
    GIT_CONFIG_VALUE_0: 'true',
    GIT_CONFIG_KEY_1: 'safe.directory',
    GIT_CONFIG_VALUE_1: '*',
  }
  if (header('git-protocol') && !old_protocol) env.GIT_PROTOCOL = header('git-protocol')
  if (header('content-encoding')) env.HTTP_CONTENT_ENCODING = header('content-encoding')
  if (header('content-length')) env.CONTENT_LENGTH = header('content-length')
  const child = spawn('git', ['http-backend'], { env, stdio: ['pipe', 'pipe', 'ignore'] })
  child.stdin.on('error', () => {})
  request.pipe(child.stdin)
  response.on('close', () => child.kill())
  let head: Buffer | undefined = Buffer.alloc(0)
  child.stdout.on('data', (chunk: Buffer) => {
    if (!head) return void response.write(chunk)
    head = Buffer.concat([head, chunk])
    const end = head.indexOf('\r\n\r\n')
    if (end < 0) return
    let status = 200
    for (const line of head.subarray(0, end).toString().split('\r\n')) {
      const colon = line.indexOf(':')
      const [name, value] = [line.slice(0, colon), line.slice(colon + 1).trim()]
      if (name.toLowerCase() === 'status') status = Number.parseInt(value, 10)
      else response.setHeader(name, value)
    }
    response.writeHead(status)
    response.write(head.subarray(end + 4))
    head = undefined
  })
  child.on('close', () => {
    if (head) response.statusCode = 500
    response.end()
  })
}

function basicCredential(request: IncomingMessage): BasicCredential | undefined {
  const [scheme, encoded] = (request.headers.authorization ?? '').split(' ')
  if (scheme !== 'Basic' || !encoded) return undefined
  const [username = '', ...rest] = Buffer.from(encoded, 'base64').toString().split(':')
  return { username, password: rest.join(':') }
}

/** Makes an authority and a certificate for localhost, valid for a day. */
function createCertificate(folder: string): { ca_file: string; key: Buffer; cert: Buffer } {
  const at = (name: string) => join(folder, name)
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'ignore' })
  writeFileSync(at('leaf.cnf'), 'subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n')
  openssl(
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-days',
    '1',
    '-subj',
    '/CN=Throw-away authority',
    '-keyout',
    at('ca.key'),
    '-out',
    at('ca.pem'),
  )
  openssl(
    'req',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-subj',
    '/CN=localhost',
    '-keyout',
    at('leaf.key'),
    '-out',
    at('leaf.csr'),
  )
  openssl(
    'x509',
    '-req',
    '-in',
    at('leaf.csr'),
    '-CA',
    at('ca.pem'),
    '-CAkey',
    at('ca.key'),
    '-CAcreateserial',
    '-days',
    '1',
    '-extfile',
    at('leaf.cnf'),
    '-out',
    at('leaf.pem'),
  )
  return {
    ca_file: at('ca.pem'),
    key: readFileSync(at('leaf.key')),
    cert: readFileSync(at('leaf.pem')),
  }
}

/**
 * Starts a smart-HTTP Git server over the real `git http-backend`, on a free port, in a folder of its own
 * under the system's temporary folder.
 */
export async function startGitServer(options: GitServerOptions = {}): Promise<GitServer> {
  const base = mkdtempSync(join(tmpdir(), 'portreeve-git-server-'))
  chmodSync(base, 0o755)
  const root = join(base, 'repositories')
  mkdirSync(root)
  const credentials = new Map<string, BasicCredential>()
  const repositories = new Map<string, GitRepository>()
  const requests: string[] = []
  const certificate = options.tls ? createCertificate(base) : undefined

  const listener: RequestListener = (request, response) => {
    requests.push(`${request.method} ${request.url}`)
    if (server.intercept?.(request, response)) return
    const url = new URL(request.url ?? '/', 'http://git')
    const push =
      url.pathname.endsWith('/git-receive-pack') || url.searchParams.get('service') === 'git-receive-pack'
    const name = decodeURIComponent(url.pathname)
      .replace(/^\//, '')
      .replace(/(\.git)?\/(info|objects|HEAD|git-).*$/, '')
    const desired = push ? PUSH_CREDENTIAL : credentials.get(name)
    const given = basicCredential(request)
    if (desired && (given?.username !== desired.username || given.password !== desired.password)) {
      response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="git"' }).end('Authentication required.')
      return
    }
    serveGit(root, options.old_protocol === true, request, response, given?.username ?? '')
  }
  const http = certificate
    ? createTlsServer({ key: certificate.key, cert: certificate.cert }, listener)
    : createServer(listener)
  await new Promise<void>((resolve) => http.listen(0, options.listen ?? '127.0.0.1', resolve))
  const host = `${certificate ? 'localhost' : '127.0.0.1'}:${(http.address() as AddressInfo).port}`
  const url = `${certificate ? 'https' : 'http'}://${host}`

  const server: GitServer = {
    url,
    host,
    root,
    requests,
    ...(certificate ? { ca_file: certificate.ca_file } : {}),
    intercept: undefined,
    repository(name, { credential, object_format = 'sha1' } = {}) {
      if (credential) credentials.set(name, credential)
      const known = repositories.get(name)
      if (known) return known
      const directory = join(root, `${name}.git`)
      mkdirSync(dirname(directory), { recursive: true })
      execFileSync(
        'git',
        ['init', '--quiet', '--bare', '--initial-branch=main', `--object-format=${object_format}`, directory],
        { env: GIT_ENVIRONMENT },
      )
      const created = openRepository(directory, `${url}/${name}.git`)
      repositories.set(name, created)
      return created
    },
    async close() {
      http.closeAllConnections()
      await new Promise((resolve) => http.close(resolve))
      rmSync(base, { recursive: true, force: true })
    },
  }
  return server
}
