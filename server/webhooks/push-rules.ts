import { alternatives, createGlob, type Glob } from '#server/kernel/glob'
import type { PushEvent } from './forges/forge.ts'

/** What of an app decides whether a push deploys it. */
export interface PushTarget {
  auto_deploy: boolean
  /** Branch that the app is built from; null follows the default branch of the repository. */
  branch: string | null
  watch_paths: readonly string[]
  /** Branch that the app was last built from; null before its first deployment. */
  last_branch: string | null
}

/** Words in a commit message that keep it from being deployed. Known from the CI services of the forges. */
const SKIP = /\[(?:skip[ -](?:ci|cd|deploy)|(?:ci|cd|deploy)[ -]skip|no[ -](?:ci|deploy))\]/i
const SKIP_TRAILER = /^skip-(?:checks|deploy):\s*true\s*$/im

export const hasSkipMarker = (message: string): boolean => SKIP.test(message) || SKIP_TRAILER.test(message)

/** Of a push with more changed files some are taken to be watched: each is compared with every pattern. */
const MOST_FILES = 2000
/** The same of more characters of files times those of patterns: those of one app are compared in one piece. */
const MOST_STEPS = 4_000_000
/** Characters of all patterns of an app, once for each text that their braces become. */
const MOST_CHARACTERS = 10_000

/** Globs that one pattern stands for; a folder stands for all that is in it. One that is none names nothing. */
function globsOf(texts: readonly string[]): Glob[] {
  try {
    return texts.flatMap((one) => [createGlob(one), createGlob(`${one}/**`)])
  } catch {
    return []
  }
}
const lengthOf = (texts: readonly string[]) => texts.reduce((sum, { length }) => sum + length, 0)

/**
 * Tells whether one of these files is watched: it matches a pattern, and no pattern with `!` that comes after it.
 * What would hold up everybody while it is compared is taken to be.
 */
export function isWatched(files: readonly string[], patterns: readonly string[]): boolean {
  const read = patterns.map((pattern) => {
    const negated = pattern.startsWith('!')
    const plain = (negated ? pattern.slice(1) : pattern).replace(/^\.?\//, '').replace(/\/$/, '')
    return { negated, texts: alternatives(plain) }
  })
  if (lengthOf(read.flatMap(({ texts }) => texts)) > MOST_CHARACTERS) return true
  const rules = read.map(({ negated, texts }) => ({ negated, globs: globsOf(texts) }))
  const steps = rules.flatMap(({ globs }) => globs).reduce((sum, glob) => sum + glob.steps, 0)
  if (steps * lengthOf(files) > MOST_STEPS) return true
  const from_start = rules.length > 0 && rules.every(({ negated }) => negated)
  return files.some((file) =>
    rules.reduce(
      (watched, { negated, globs }) => (globs.some(({ test }) => test(file)) ? !negated : watched),
      from_start,
    ),
  )
}

/** Whether a push changed nothing of what is watched, as far as it tells what it changed. */
export function touchesNothing({ changed }: PushEvent, patterns: readonly string[]): boolean {
  if (patterns.length === 0 || !changed || changed.length > MOST_FILES) return false
  return !isWatched(changed, patterns)
}

/** What a push moved, each as a push of its own. */
export const movesOf = ({ others = [], ...event }: PushEvent): PushEvent[] => [
  event,
  ...others.map((one) => ({ ...event, ...one })),
]

/** Some forges do not say which branch is the default: then it is the one that was found out before. */
const branchOf = (push: PushEvent, target: Pick<PushTarget, 'branch' | 'last_branch'>): string | null =>
  target.branch ?? push.default_branch ?? target.last_branch

/**
 * The part of a push that deploys an app; or why none does, as a sentence.
 * @param touches_nothing whether it changed nothing of what is watched: of many apps that takes long to find out.
 */
export function deployedBy(
  push: PushEvent,
  target: Omit<PushTarget, 'watch_paths'>,
  touches_nothing: boolean,
): PushEvent | string {
  const moves = movesOf(push)
  const own = moves.find(({ ref, name }) => ref === 'branch' && name === branchOf(push, target)) ?? moves[0]!
  return refusePush(own, target, touches_nothing) ?? own
}

/** Why a push does not deploy an app, as a sentence; undefined when it does. */
export function refusePush(
  push: PushEvent,
  target: Omit<PushTarget, 'watch_paths'>,
  touches_nothing: boolean,
): string | undefined {
  if (push.ref === 'tag') return 'Tags are not deployed.'
  if (push.sha === null) return `The branch ${push.name} was deleted.`
  const branch = branchOf(push, target)
  if (branch === null)
    return `Whether ${push.name} is the default branch is not known. Set the branch of the app, or deploy it once.`
  if (branch !== push.name) return `The push is to ${push.name}; the app is deployed from ${branch}.`
  if (!target.auto_deploy)
    return 'Deploy on push is off for this app; a rollback turns it off. Turn it on in the settings of the app (`auto_deploy`).'
  if (hasSkipMarker(push.message)) return 'The commit message says that it is not to be deployed.'
  if (touches_nothing) return 'No changed file matches watch_paths.'
  return undefined
}
