import { createHash } from 'node:crypto'
import { createTextMatcher, LONGEST, SHORTEST, type TextMatcher } from './text-matcher.ts'

const MASK = '[redacted]'
/**
 * So much of the end of a cut line is not shown, whatever stands there: a secret of which the rest was cut off
 * cannot be known as one, and what is masked must not tell how much of a guess was right.
 */
const TAIL = LONGEST

/** Ends a line of which the rest was not kept, until it is masked. */
export const CUT_MARK = ' … [line truncated]'
/** Ends it from then on: a log is masked when it is written and when it is read, and loses its end once. */
const SHOWN_MARK = ' … [the rest of the line was not kept]'

/**
 * A secret in base64, also as the end or the middle of a longer text such as `user:secret`, whatever comes
 * before it: base64 writes three bytes at a time, so a value has one form for each place in such a group.
 * Characters that it shares with its neighbours are left out, but for those at the end, which are its own
 * when nothing follows.
 */
function encoded(secret: string, encoding: 'base64' | 'base64url'): string[] {
  return [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)])
    const own = bytes
      .toString(encoding)
      .replace(/=+$/, '')
      .slice(Math.ceil((before * 4) / 3))
    const inner = Math.floor((bytes.length * 8) / 6) - Math.ceil((before * 4) / 3)
    return [own, own.slice(0, inner)]
  })
}

/**
 * All that is looked for of some secrets. Shorter values would blot out ordinary words. Made while it is gone
 * through, since together they are some ten times as long as the secrets.
 */
function formsOf(secrets: ReadonlySet<string>): Iterable<string> {
  return {
    *[Symbol.iterator]() {
      for (const secret of secrets) {
        for (const line of new Set([secret, ...secret.split('\n')])) {
          if (line.length < SHORTEST) continue
          const forms = [line, encodeURIComponent(line), JSON.stringify(line).slice(1, -1)]
          yield* new Set([...forms, ...encoded(line, 'base64'), ...encoded(line, 'base64url')])
        }
      }
    },
  }
}

/** Memory that matchers may take which are kept for the next one who has the same secrets. */
const MOST_KEPT_BYTES = 64 * 1024 ** 2
/** By a digest of the secrets; who was asked for longest ago comes first. */
const kept = new Map<string, TextMatcher>()
let kept_bytes = 0

/** Made once: followers and readers of a log ask again and again, and its secrets seldom change. */
export function matcherOf(secrets: readonly string[]): TextMatcher {
  const digest = createHash('sha256').update(JSON.stringify(secrets)).digest('base64')
  const known = kept.get(digest)
  const matcher = known ?? createTextMatcher(formsOf(new Set(secrets)))
  kept.delete(digest)
  kept.set(digest, matcher)
  if (!known) kept_bytes += matcher.bytes
  for (const [oldest, { bytes }] of kept) {
    if (kept_bytes <= MOST_KEPT_BYTES || oldest === digest) break
    kept.delete(oldest)
    kept_bytes -= bytes
  }
  return matcher
}

/**
 * Takes known secret values out of a text, also in their base64 (with any user name before them) and
 * URL-encoded forms, those that overlap together. Only whole forms are known, and where the text ends with
 * `CUT_MARK`, its end goes whatever it is: else somebody who prints guesses could read a secret letter by
 * letter. Decision 0096; source: security.md 2.7.
 */
export function redactor(secrets: readonly string[]): (text: string) => string {
  const matcher = matcherOf(secrets)
  return (text) => {
    if (!text.endsWith(CUT_MARK)) return masked(matcher, text, text.length)
    const line = text.slice(0, -CUT_MARK.length)
    return `${masked(matcher, line, Math.max(0, line.length - TAIL))}${SHOWN_MARK}`
  }
}

/** A text up to a place, without what the matcher finds. */
function masked(matcher: TextMatcher, text: string, end: number): string {
  let result = ''
  let written = 0
  for (const [from, to] of matcher.spans(text)) {
    if (from >= end) break
    result += text.slice(written, from) + MASK
    written = to
  }
  return result + text.slice(written, Math.max(written, end))
}
