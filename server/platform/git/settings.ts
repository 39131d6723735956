import type { GitUrl } from './parse-url.ts'

/** What git runs in. */
export interface GitSurroundings {
  session_directory: string
  /** Of the guard, with its own login. */
  proxy_url: string | undefined
  /** PEM file of the authorities that hosts are checked against; the system's when undefined. */
  ca_file: string | undefined
  /** Whether the session's file of credentials holds one for the host. */
  has_credential: boolean
}

/**
 * Every setting that git gets. No file of the system, of a user or of the repository can change them, and no
 * content of a repository is ever run: no hooks, no filters (none are defined), no submodules, no external
 * protocols.
 */
function settings(
  url: GitUrl,
  { proxy_url, has_credential }: Pick<GitSurroundings, 'proxy_url' | 'has_credential'>,
): [key: string, value: string][] {
  return [
    ['protocol.allow', 'never'],
    [`protocol.${url.protocol}.allow`, 'always'],
    ['protocol.version', '2'],
    ['core.hooksPath', '/dev/null'],
    ['core.fsmonitor', 'false'],
    ['core.autocrlf', 'false'],
    ['core.symlinks', 'true'],
    ['core.protectNTFS', 'true'],
    ['core.protectHFS', 'true'],
    ['core.quotePath', 'false'],
    ['submodule.recurse', 'false'],
    ['fetch.recurseSubmodules', 'false'],
    ['transfer.fsckObjects', 'true'],
    ['transfer.bundleURI', 'false'],
    // Harmless and found in the history of well-known projects; git hosts accept them too.
    ['fetch.fsck.zeroPaddedFilemode', 'ignore'],
    ['fetch.fsck.missingSpaceBeforeDate', 'ignore'],
    ['fetch.fsck.badTimezone', 'ignore'],
    ['fetch.fsck.missingEmail', 'ignore'],
    ['gc.auto', '0'],
    ['maintenance.auto', 'false'],
    ['fetch.writeCommitGraph', 'false'],
    ['fetch.unpackLimit', '1'],
    ['advice.detachedHead', 'false'],
    ['init.defaultBranch', 'main'],
    ['pack.threads', '1'],
    ['core.packedGitWindowSize', '64m'],
    ['core.packedGitLimit', '512m'],
    ['core.bigFileThreshold', '32m'],
    ['checkout.workers', '1'],
    // What a crash leaves of a session is thrown away, and a mirror that is not whole is fetched anew.
    ['core.fsync', 'none'],
    ['i18n.logOutputEncoding', 'UTF-8'],
    ['log.showSignature', 'false'],
    // Renamed repositories answer with a redirect. Each hop goes through the guard, and a credential stays
    // with its host.
    ['http.followRedirects', 'initial'],
    ['http.sslVerify', 'true'],
    ['http.lowSpeedLimit', '1000'],
    ['http.lowSpeedTime', '30'],
    ...(proxy_url
      ? ([
          ['http.proxy', proxy_url],
          ['http.proxyAuthMethod', 'basic'],
        ] as [string, string][])
      : []),
    // The first empties the list of helpers; the second reads the session's own file and hands out nothing
    // for another host. Without a credential it would only be handed that of the proxy, by a shell.
    ['credential.helper', ''],
    ...(has_credential ? [['credential.helper', 'store --file=../credentials'] as [string, string]] : []),
    ['credential.useHttpPath', 'false'],
  ]
}

/**
 * The complete environment of git. Settings travel here and not as arguments, so that the guard's credential
 * is in no process list.
 */
export function gitEnvironment(url: GitUrl, around: GitSurroundings): Record<string, string> {
  const { session_directory, ca_file } = around
  const pairs = settings(url, around)
  return {
    HOME: `${session_directory}/home`,
    XDG_CONFIG_HOME: `${session_directory}/home`,
    TMPDIR: session_directory,
    GIT_TERMINAL_PROMPT: '0',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_LFS_SKIP_SMUDGE: '1',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_ALLOW_PROTOCOL: url.protocol,
    GIT_PROTOCOL_FROM_USER: '0',
    GIT_CEILING_DIRECTORIES: session_directory,
    GIT_NO_LAZY_FETCH: '1',
    // A constant: git hands it to a shell, so everything that varies is in the file it names.
    GIT_SSH_COMMAND: 'ssh -F ../ssh_config',
    GIT_SSH_VARIANT: 'ssh',
    ...(ca_file ? { GIT_SSL_CAINFO: ca_file } : {}),
    GIT_CONFIG_COUNT: String(pairs.length),
    ...Object.fromEntries(
      pairs.flatMap(([key, value], index) => [
        [`GIT_CONFIG_KEY_${index}`, key],
        [`GIT_CONFIG_VALUE_${index}`, value],
      ]),
    ),
  }
}
