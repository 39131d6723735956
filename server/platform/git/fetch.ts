import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { commitNotFound, quote, tooLarge } from './errors.ts'
import { explainFailure } from './failure.ts'
import type { GitLimits, GitSession } from './session.ts'

/**
 * Commits of a branch that are looked through for an abbreviated id, or on servers that hand out tips of
 * branches only.
 */
const HISTORY_DEPTH = 5000
const WATCH_EVERY_MS = 250
const FETCH = [
  'fetch',
  '--no-tags',
  '--no-recurse-submodules',
  '--no-auto-maintenance',
  '--no-show-forced-updates',
  '--progress',
]
/** The server has the commit perhaps, but does not hand it out by its id. */
const NOT_BY_ID =
  /unadvertised object|not our ref|no such remote ref|couldn't find remote ref|does not support shallow/i

/** Bytes of a folder's files; what vanishes while looking does not count. */
async function diskUsage(directory: string): Promise<number> {
  let total = 0
  for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => [])) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) total += await diskUsage(path)
    else
      total += await stat(path).then(
        ({ size }) => size,
        () => 0,
      )
  }
  return total
}

/** Ends the session when what is being fetched outgrows its limit on disk. */
function watchDisk(session: GitSession, max_bytes: number): () => void {
  let stopped = false
  let timer: NodeJS.Timeout | undefined
  const look = async (): Promise<void> => {
    if ((await diskUsage(join(session.repository, '.git'))) > max_bytes) session.stop(tooLarge(max_bytes))
    else if (!stopped) timer = setTimeout(look, WATCH_EVERY_MS)
  }
  timer = setTimeout(look, WATCH_EVERY_MS)
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}

/** Characters at the end of a line in which git says how far it is. A remote may say as much as it likes. */
const LONGEST_PROGRESS = 200

/** Passes on what the remote says and the end of each phase; percentages in between are noise in a log. */
export const progressTo =
  (onLog: (line: string) => void) =>
  (line: string): void => {
    const end = line.slice(-LONGEST_PROGRESS)
    if (/\b100% .*done\.?$/.test(end)) onLog(quote(end.trim(), 200))
  }

export interface FetchPlan {
  url: string
  /** Full or abbreviated id. */
  commit: string
  /** Where to look when the server does not hand out the commit by its id. */
  ref: string
  host: string
  has_credential: boolean
}

const isFull = (commit: string): boolean => commit.length === 40 || commit.length === 64
const NO_SUCH_REF = /couldn't find remote ref/i
const NO_SUCH_BRANCH = /couldn't find remote ref|mismatched algorithms/i
type Connection = Pick<FetchPlan, 'url' | 'host' | 'has_credential'>

/** Runs `work` with the disk watched, and hands it a fetch whose failure it may look at. */
async function fetching<T>(
  session: GitSession,
  limits: GitLimits,
  onLog: (line: string) => void,
  work: (
    fetch: (connection: Connection, depth: number, what: string, excused?: RegExp) => Promise<boolean>,
  ) => Promise<T>,
): Promise<T> {
  const stop = watchDisk(session, limits.max_bytes)
  try {
    return await work(async (connection, depth, what, excused) => {
      const { exit_code, stderr } = await session.git(
        [...FETCH, `--depth=${depth}`, '--', connection.url, what],
        {
          may_fail: true,
          onLine: progressTo(onLog),
        },
      )
      if (exit_code !== 0 && !excused?.test(stderr))
        throw explainFailure({
          ...connection,
          stderr,
          max_bytes: limits.max_bytes,
          refusal: session.refusal,
        })
      return exit_code === 0
    })
  } finally {
    stop()
  }
}

/**
 * Brings the tip of a branch with a single exchange. `undefined` when there is no such branch; then the
 * slower way finds out what there is.
 */
export async function fetchBranch(
  session: GitSession,
  connection: Connection,
  branch: string,
  limits: GitLimits,
  onLog: (line: string) => void,
): Promise<string | undefined> {
  await session.createRepository('sha1')
  return fetching(session, limits, onLog, async (fetch) =>
    (await fetch(connection, 1, `refs/heads/${branch}`, NO_SUCH_BRANCH)) ? 'FETCH_HEAD' : undefined,
  )
}

/** Whether a commit is in the history that was fetched just now. */
async function isIn(session: GitSession, commit: string): Promise<boolean> {
  const { exit_code } = await session.git(['merge-base', '--is-ancestor', commit, 'FETCH_HEAD'], {
    may_fail: true,
  })
  return exit_code === 0
}

/**
 * Brings one commit, without its history, into the session's repository and returns its full id. Old servers
 * hand out tips of branches only: then the branch's history is fetched, within the same limits.
 */
export async function fetchCommit(
  session: GitSession,
  plan: FetchPlan,
  limits: GitLimits,
  onLog: (line: string) => void,
): Promise<string> {
  await session.createRepository(plan.commit.length === 64 ? 'sha256' : 'sha1')
  return fetching(session, limits, onLog, async (fetch) => {
    if (isFull(plan.commit) && (await fetch(plan, 1, plan.commit, NOT_BY_ID))) return plan.commit
    // Without its branch there is no such commit either.
    const has_ref = await fetch(plan, HISTORY_DEPTH, plan.ref, NO_SUCH_REF)
    const { stdout, exit_code } = await session.git(
      ['rev-parse', '--verify', '--quiet', '--end-of-options', `${plan.commit}^{commit}`],
      { may_fail: true },
    )
    // What only an earlier fetch brought is no commit of the remote any more.
    if (exit_code !== 0 || !has_ref || !(await isIn(session, stdout.trim())))
      throw commitNotFound(plan.commit)
    return stdout.trim()
  })
}
