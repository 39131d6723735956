import { createGlob } from '#server/kernel/glob'
import type { Pace } from '#server/kernel/pace'

/** What is known of a folder or file of a build context. */
export interface Verdict {
  /** Whether it is left out, by itself or by one of its parents. */
  excluded: boolean
  /** For each pattern, whether it or a parent of it matches. */
  matched: readonly boolean[]
}
/** Answers which paths of a build context are left out. */
export interface IgnoreRules {
  /** Judges a path (relative, with `/`), with what was said of the folder that it lies in. */
  judge(path: string, parent?: Verdict): Verdict
  /** The same with others served in between: a stranger's patterns and long paths take longer than a piece may. */
  judgeInPieces(pace: Pace, path: string, parent?: Verdict): Promise<Verdict>
  /** Whether something below an excluded folder may be taken back in by a `!` line. */
  readonly has_exceptions: boolean
}

/** Lines that are read, and characters of patterns with many wildcards: each path is compared with all. */
const MOST_PATTERNS = 2000
const MOST_INVOLVED = 2000
/** Characters of one such pattern: it is compared with a path in one piece. */
const MOST_OF_ONE = 300

/** Removes `.`, `..` and empty parts the way Docker cleans patterns. */
function cleanPattern(text: string): string {
  const parts: string[] = []
  for (const part of text.split('/')) {
    if (part === '' || part === '.') continue
    if (part === '..') parts.pop()
    else parts.push(part)
  }
  return parts.join('/')
}

/** One line of a `.dockerignore`: a pattern, and whether it takes paths back in. */
interface IgnorePattern {
  test(path: string): boolean
  is_involved: boolean
  again: boolean
  length: number
}

function readLine(raw: string): IgnorePattern[] {
  if (raw.startsWith('#')) return []
  const line = raw.trim()
  const again = line.startsWith('!')
  const pattern = cleanPattern(again ? line.slice(1).trim() : line)
  if (pattern === '') return []
  try {
    return [{ ...createGlob(pattern), again, length: pattern.length }]
  } catch {
    // For example a class whose range is upside down: it matches nothing.
    return []
  }
}

/** Reads a `.dockerignore`. Throws RangeError for one that would take too long to go by. */
export function parseIgnoreRules(text: string): IgnoreRules {
  const patterns = text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .flatMap(readLine)
  const involved = patterns.filter(({ is_involved }) => is_involved)
  if (
    patterns.length > MOST_PATTERNS ||
    involved.some(({ length }) => length > MOST_OF_ONE) ||
    involved.reduce((sum, { length }) => sum + length, 0) > MOST_INVOLVED
  )
    throw new RangeError('The .dockerignore has too many patterns, or too many wildcards in them.')
  /** Stops after each pattern that takes long. */
  function* judging(path: string, parent: Verdict | undefined): Generator<void, Verdict, void> {
    const matched: boolean[] = []
    for (const [at, { test, is_involved }] of patterns.entries()) {
      matched.push((parent?.matched[at] ?? false) || test(path))
      if (is_involved) yield
    }
    const excluded = patterns.reduce((left, { again }, at) => (matched[at] ? !again : left), false)
    return { excluded, matched }
  }
  return {
    has_exceptions: patterns.some(({ again }) => again),
    judge(path, parent) {
      const pieces = judging(path, parent)
      for (;;) {
        const { done, value } = pieces.next()
        if (done) return value
      }
    },
    async judgeInPieces(pace, path, parent) {
      const pieces = judging(path, parent)
      for (;;) {
        const { done, value } = pieces.next()
        if (done) return value
        const rest = pace.rest()
        if (rest) await rest
      }
    },
  }
}
