import type { OutboundError } from '#server/platform/outbound/outbound'
import {
  authenticationNeeded,
  authenticationRefused,
  quote,
  repositoryNotFound,
  tooLarge,
  unreachable,
} from './errors.ts'
import { GitError } from './git.ts'

/** What is known about a run of git that failed. */
export interface FailedRun {
  stderr: string
  host: string
  has_credential: boolean
  max_bytes: number
  /** Why the guard did not make or keep a connection; more exact than what git could say. */
  refusal?: OutboundError | undefined
}

type Rule = [pattern: RegExp, explain: (run: FailedRun, match: RegExpExecArray) => GitError]

const refusedOrNeeded = ({ host, has_credential }: FailedRun) =>
  has_credential ? authenticationRefused(host) : authenticationNeeded(host)
const tls = ({ host }: FailedRun) =>
  new GitError(
    'unreachable',
    `${quote(host)} did not prove its identity: its TLS certificate is not valid.`,
    'Renew the certificate of the host, or add its authority to the certificates of this server (SSL_CERT_FILE).',
  )
const hostKey = ({ host, stderr }: FailedRun) => {
  const sent = /SHA256:[A-Za-z0-9+/]{43}/.exec(stderr)?.[0]
  return new GitError(
    'host_key',
    `The SSH host key of ${quote(host)} is not the one that is known.`,
    `${sent ? `It sent ${sent}. ` : ''}Someone may be listening in. When the host was set up anew, give its new key as known_hosts lines with the deploy key (ssh-keyscan prints them; compare them with the host).`,
  )
}

/** Read from top to bottom: the first that matches explains. Texts are git's and ssh's own with LC_ALL=C. */
const RULES: Rule[] = [
  [
    /Out of memory|out of memory|unable to create thread|mmap failed/,
    () =>
      new GitError(
        'too_large',
        'Git ran out of the memory that it may use for one repository.',
        'Remove large files from the branch (or store them outside of Git).',
      ),
  ],
  [
    /File too large|File size limit exceeded|SIGXFSZ|died of signal 25/,
    ({ max_bytes }) => tooLarge(max_bytes),
  ],
  [
    /No space left on device|Disk quota exceeded/,
    () =>
      new GitError('failed', 'The disk of this server is full.', 'Free space on the server, then try again.'),
  ],
  [/REMOTE HOST IDENTIFICATION HAS CHANGED|Host key verification failed|No \S+ host key is known/, hostKey],
  [
    /Load key .*(invalid format|error in libcrypto|incorrect passphrase|bad permissions)/,
    () =>
      new GitError(
        'authentication',
        'The deploy key of this repository cannot be read.',
        'Use a private key in OpenSSH format without a passphrase.',
      ),
  ],
  [
    /Permission denied \(|Too many authentication failures|could not read (Username|Password)|terminal prompts disabled/,
    refusedOrNeeded,
  ],
  [/Authentication failed for|Access denied|returned error: 40[13]\b/, refusedOrNeeded],
  [
    /(transport|protocol) '?\S+'? not allowed|not supported or disabled in libcurl|unable to update url base from redirection/i,
    ({ host }) =>
      new GitError(
        'forbidden_host',
        `${quote(host)} redirects to an address that cannot be used.`,
        'Use the address that the repository has now.',
      ),
  ],
  [
    /returned error: 404|repository '.*' not found|Repository not found|does not appear to be a git repository|could not be found|Could not find repository|no such repository|is this a git repository\?|invalid server response|invalid-header|dumb http transport/i,
    ({ host }) => repositoryNotFound(host),
  ],
  [
    /returned error: (429|5\d\d)/,
    ({ host }, match) => unreachable(host, `it answered with the error ${match[1]}`),
  ],
  [
    /server certificate|SSL certificate|certificate verif|gnutls_handshake|SSL_ERROR|TLS connect|SSL routines/i,
    tls,
  ],
  [/Could not resolve host(name)?/i, ({ host }) => unreachable(host, 'its name is not known to DNS')],
  [/Connection refused/i, ({ host }) => unreachable(host, 'it refused the connection')],
  [/timed out|Operation too slow/i, ({ host }) => unreachable(host, 'it did not answer in time')],
  [
    /fsck error|fsck_obj|hasDotgit|contains '\.git'|gitmodules\w*:|invalid path|disallowed submodule/i,
    () =>
      new GitError(
        'failed',
        'The repository holds objects that git refuses as unsafe.',
        'Run git fsck in your copy of the repository, and repair what it names.',
      ),
  ],
  [
    /early EOF|unexpected disconnect|RPC failed|hung up unexpectedly|transfer closed|Connection (closed|reset)|kex_exchange_identification|Could not read from remote repository|Failed to connect|HTTP code 5\d\d from proxy/i,
    ({ host }) => unreachable(host, 'the connection broke'),
  ],
]

/** A refusal of the guard as a sentence about the repository. */
export function explainRefusal(refusal: OutboundError, host: string, max_bytes: number): GitError {
  const reasons: Partial<Record<OutboundError['code'], string>> = {
    unknown_host: 'its name is not known to DNS',
    refused: 'it refused the connection',
    timeout: 'it did not answer in time',
    failed: 'the connection broke',
  }
  if (refusal.code === 'too_large') return tooLarge(max_bytes)
  if (refusal.code === 'forbidden' || refusal.code === 'invalid') {
    return new GitError(
      'forbidden_host',
      `${quote(host)} leads to an address that is not on the public internet.`,
      'Use a public address, or ask the operator of this server to list the host in PORTREEVE_ALLOWED_PRIVATE_HOSTS.',
      { cause: refusal },
    )
  }
  return unreachable(host, reasons[refusal.code] ?? 'the connection could not be made')
}

/** Lines that are looked at, and characters of each. What a remote says is among them, in a megabyte if it likes. */
const MOST_LINES = 200
const LONGEST_LINE = 1000

const lastLines = (stderr: string): string[] =>
  stderr
    .split(/[\r\n]+/)
    .slice(-MOST_LINES)
    .map((line) => line.slice(0, LONGEST_LINE))

/**
 * Turns a failed run into one sentence and a hint. What cannot be explained quotes git's last words, without
 * paths of this server.
 */
export function explainFailure(run: FailedRun): GitError {
  // A connection that broke may be the effect of what git says; other refusals are the cause.
  if (run.refusal && run.refusal.code !== 'failed')
    return explainRefusal(run.refusal, run.host, run.max_bytes)
  const lines = lastLines(run.stderr)
  const stderr = lines.join('\n')
  for (const [pattern, explain] of RULES) {
    const match = pattern.exec(stderr)
    if (match) return explain({ ...run, stderr }, match)
  }
  if (run.refusal) return explainRefusal(run.refusal, run.host, run.max_bytes)
  const last = lines.filter((line) => /^(fatal|error|remote):/.test(line)).at(-1) ?? 'no reason was given'
  return new GitError(
    'failed',
    `Git could not read the repository: ${quote(last.replace(/\/\S*/g, '…'), 200)}.`,
    'Try again; when it happens again, clone the repository by hand to see why.',
  )
}
