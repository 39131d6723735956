/**
 * Reading a Git repository: nothing of it is ever executed, and nothing outside of the target
 * folder is touched.
 */
export interface Git {
  /** Asks the remote for the commit of a branch (default: its HEAD) without cloning. */
  resolve(source: GitSource, signal: AbortSignal): Promise<{ branch: string; sha: string }>
  /**
   * Shallow checkout of exactly one commit into `directory` (absent or empty before; removed again
   * on any failure). With `commit` that commit, else the tip of `branch`, else of the remote's
   * HEAD.
   */
  checkout(
    source: GitSource,
    directory: string,
    options: CheckoutOptions,
    signal: AbortSignal,
  ): Promise<Checkout>
  /** Removes what is kept under the name of a mirror. */
  forget(mirror: string): Promise<void>
  /** Removes mirrors that nobody used for 30 days. */
  pruneMirrors(now: number): Promise<void>
}
export interface GitSource {
  /**
   * `https://…`, `ssh://…` or `user@host:path`; `http://` only for hosts in
   * PORTREEVE_ALLOWED_PRIVATE_HOSTS. Checked by `parseGitUrl`.
   */
  url: string
  branch?: string
  /** Full or abbreviated (>= 7) hexadecimal commit id. */
  commit?: string
  credential?: GitCredential
}
export type GitCredential =
  | { kind: 'token'; username?: string; token: string }
  | {
      kind: 'ssh'
      private_key: string /** Lines of known_hosts; the host key is pinned by them. */
      known_hosts?: string
    }
export interface CheckoutOptions {
  lfs: boolean
  /**
   * Name (letters, digits, `_`) under which what is fetched is kept, so that the next checkout by
   * this name from the same address fetches only what changed. Nothing is kept without.
   */
  mirror?: string
  onLog(line: string): void
}
export interface Checkout {
  branch: string
  sha: string
  message: string
  author: string
  committed_at: string
  files: number
  size_bytes: number
}

export type GitErrorCode =
  | 'invalid_url'
  | 'forbidden_host'
  | 'unreachable'
  | 'not_found'
  | 'authentication'
  | 'host_key'
  | 'branch_not_found'
  | 'commit_not_found'
  | 'empty'
  | 'too_large'
  | 'too_many_files'
  | 'bad_name'
  | 'timeout'
  | 'aborted'
  | 'failed'

/**
 * `message` says what happened in one sentence, `hint` what the user does next. Neither holds a
 * credential.
 */
export class GitError extends Error {
  readonly code: GitErrorCode
  readonly hint: string
  constructor(code: GitErrorCode, message: string, hint: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'GitError'
    this.code = code
    this.hint = hint
  }
}
