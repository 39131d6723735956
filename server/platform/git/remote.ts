import { branchNotFound, emptyRepository } from './errors.ts'
import { isRef } from './refs.ts'
import type { GitSession } from './session.ts'

/** What is to be fetched: the commit, the reference that leads to it, and the name that users know it by. */
export interface Target {
  branch: string
  sha: string
  ref: string
}

interface Refs {
  head?: string
  head_sha?: string
  shas: Map<string, string>
}

const SHA = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/

const BRANCH = 'refs/heads/'
/** Whether git can be asked for what a remote calls a branch: with a colon in it, it would write another one. */
const isBranch = (name: string): boolean => name.startsWith(BRANCH) && isRef(name.slice(BRANCH.length))

/** Reads the output of `git ls-remote --symref`. */
function parseRefs(text: string): Refs {
  const refs: Refs = { shas: new Map() }
  for (const line of text.split('\n')) {
    const [value = '', name = ''] = line.split('\t')
    if (name === 'HEAD' && value.startsWith('ref: ')) {
      if (isBranch(value.slice(5))) refs.head = value.slice(5)
    } else if (name === 'HEAD' && SHA.test(value)) refs.head_sha = value
    else if (SHA.test(value)) refs.shas.set(name, value)
  }
  return refs
}

const list = async (session: GitSession, url: string, ...patterns: string[]): Promise<Refs> =>
  parseRefs(
    (
      await session.git(['ls-remote', '--quiet', '--symref', '--', url, ...patterns], {
        max_output_bytes: 4 * 1024 ** 2,
      })
    ).stdout,
  )

const branchesOf = (refs: Refs): string[] =>
  [...refs.shas.keys()].filter(isBranch).map((name) => name.slice(BRANCH.length))

/** Says which branches there are instead, the default one first. */
async function explainMissing(session: GitSession, url: string, branch: string): Promise<Error> {
  const refs = await list(session, url, 'HEAD', `${BRANCH}*`)
  const names = branchesOf(refs)
  if (names.length === 0) return emptyRepository()
  const head = refs.head?.slice(BRANCH.length)
  return branchNotFound(
    branch,
    names.sort((a, b) => Number(b === head) - Number(a === head)),
  )
}

/** The tip of a branch; a tag of that name serves when there is no such branch. */
async function findNamed(session: GitSession, url: string, branch: string): Promise<Target> {
  const tag = `refs/tags/${branch}`
  const { shas } = await list(session, url, `${BRANCH}${branch}`, tag, `${tag}^{}`)
  const tip = shas.get(`${BRANCH}${branch}`)
  if (tip) return { branch, sha: tip, ref: `${BRANCH}${branch}` }
  const tagged = shas.get(`${tag}^{}`) ?? shas.get(tag)
  if (tagged) return { branch, sha: tagged, ref: tag }
  throw await explainMissing(session, url, branch)
}

/** The remote's HEAD; when it points nowhere, the only branch there is. */
async function findHead(session: GitSession, url: string): Promise<Target> {
  const { head, head_sha } = await list(session, url, 'HEAD')
  if (head_sha && head) return { branch: head.slice(BRANCH.length), sha: head_sha, ref: head }
  const refs = await list(session, url, `${BRANCH}*`)
  const names = branchesOf(refs)
  const same = names.filter((name) => refs.shas.get(BRANCH + name) === head_sha)
  if (head_sha) return { branch: same[0] ?? 'HEAD', sha: head_sha, ref: 'HEAD' }
  if (names.length === 0) throw emptyRepository()
  if (names.length > 1) throw branchNotFound(head?.slice(BRANCH.length) ?? 'HEAD', names.sort())
  return { branch: names[0]!, sha: refs.shas.get(BRANCH + names[0])!, ref: BRANCH + names[0] }
}

/** Asks the remote which commit a branch, or its HEAD, stands at. One request when the answer is yes. */
export const findTarget = (session: GitSession, url: string, branch: string | undefined): Promise<Target> =>
  branch === undefined ? findHead(session, url) : findNamed(session, url, branch)
