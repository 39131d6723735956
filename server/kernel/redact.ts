import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { secretPartsOf } from './secret-parts.ts'
import { inOnePiece, inPieces, type Steps } from './steps.ts'
import {
  createTextMatcher,
  LONGEST,
  SHORTEST,
  type TextMatcher,
  textMatcherInPieces,
} from './text-matcher.ts'

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
 * Lines of secrets that are looked for in each form by themselves, too. Of further ones the line as it is, and
 * all forms of the whole secret: a certificate has fewer, and a thousand variables of a thousand lines would
 * take many seconds.
 */
const MOST_ENCODED_LINES = 1_000

/**
 * A secret in base64, also as the end or the middle of a longer text such as `user:secret`, whatever comes
 * before it: base64 writes three bytes at a time, so a value has one form for each place in such a group.
 * Characters that it shares with its neighbours are left out, but for those at the end, which are its own
 * when nothing follows. Of a long form only the end differs by that.
 */
function* encoded(secret: string): Generator<string> {
  const bytes = Buffer.from(secret)
  for (const before of [0, 1, 2]) {
    const own = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/=+$/, '')
      .slice(Math.ceil((before * 4) / 3))
    const inner = own.slice(0, Math.floor(((before + bytes.length) * 8) / 6) - Math.ceil((before * 4) / 3))
    const forms = inner === own ? [own] : [own, inner.length > LONGEST ? inner.slice(-LONGEST) : inner]
    for (const form of forms) {
      yield form
      if (/[+/]/.test(form)) yield form.replaceAll('+', '-').replaceAll('/', '_')
    }
  }
}
/**
 * Characters of secrets that are looked for as all languages write them; further ones as JavaScript does. Of a
 * megabyte of signs that each is written in six others the forms would take seconds.
 */
const MOST_WRITTEN = 65_536
/** Passwords and the like that are part of secrets and are looked for by themselves. */
const MOST_PARTS = 1_000

/** As JSON of other languages writes a character. */
const escaped = (text: string, characters: RegExp, hex = (code: string) => code): string =>
  text.replace(characters, (one) => `\\u${hex(one.charCodeAt(0).toString(16).padStart(4, '0'))}`)
const upper = (text: string) => text.toUpperCase()
const lowerHex = (text: string) => text.replace(/%[0-9A-F]{2}/g, (one) => one.toLowerCase())

/** A text within JSON: as JavaScript, Go and Ruby, Python, PHP, and .NET write it. */
function jsonForms(json: string): string[] {
  const ascii = escaped(json, /[\u0080-\uffff]/g)
  return [
    escaped(json, /[<>&\u2028\u2029]/g),
    ascii,
    ascii.replaceAll('/', '\\/'),
    json.replaceAll('/', '\\/'),
    escaped(json.replaceAll('\\"', '"'), /["&'+<>`\u007f-\uffff]/g, upper),
  ]
}
/** A text within an address or a form: what is left as it is, and how the rest is written, differs by language. */
function urlForms(text: string, url: string): string[] {
  const strict = url.replace(/[!'()*]/g, (one) => `%${upper(one.charCodeAt(0).toString(16))}`)
  const form = new URLSearchParams([['', text]]).toString().slice(1)
  const usual = [url, strict, form, strict.replaceAll('%2F', '/')]
  return [...usual, ...usual.map(lowerHex)]
}
/** @param isEvery whether there is room for the forms of all languages. */
function* formsOfText(text: string, isEvery: boolean): Generator<string> {
  yield text
  yield* encoded(text)
  // Of most there is one form, whatever writes it.
  if (/^[\w.-]*$/.test(text)) return
  const [url, json] = [encodeURIComponent(text), JSON.stringify(text).slice(1, -1)]
  const others = isEvery ? [...urlForms(text, url), ...jsonForms(json)] : []
  for (const form of new Set([url, json, ...others])) if (form !== text) yield form
}

/**
 * All that is looked for of some secrets. Shorter values would blot out ordinary words. Made while it is gone
 * through, since together they are many times as long as the secrets.
 */
function* formsOf(secrets: ReadonlySet<string>): Generator<string> {
  let lines_left = MOST_ENCODED_LINES
  let written_left = MOST_WRITTEN
  let parts_left = MOST_PARTS
  function* formsWithin(text: string): Generator<string> {
    if (text.length < SHORTEST) return
    written_left -= text.length
    yield* formsOfText(text, written_left >= 0)
  }
  for (const secret of secrets) {
    yield* formsWithin(secret)
    for (const part of parts_left > 0 ? secretPartsOf(secret) : []) {
      yield* formsWithin(part)
      parts_left -= 1
      if (parts_left === 0) break
    }
    if (!secret.includes('\n')) continue
    for (const line of secret.split('\n')) {
      if (line.length < SHORTEST) continue
      if (lines_left > 0) yield* formsWithin(line)
      else yield line
      lines_left -= 1
    }
  }
}

/** Memory that matchers may take which are kept for the next one who has the same secrets. */
const MOST_KEPT_BYTES = 64 * 1024 ** 2
/** By a digest of the secrets; who was asked for longest ago comes first. */
const kept = new Map<string, TextMatcher>()
let kept_bytes = 0

/** Lets others come between the pieces. */
const turn = () => setImmediate()

/** Characters that are hashed in one piece. */
const HASHED_AT_ONCE = 2_000_000

/** Says which secrets they are; a step ends with each piece of them. */
function* digestInPieces(secrets: ReadonlySet<string>): Steps<string> {
  const hash = createHash('sha256')
  let left = HASHED_AT_ONCE
  for (const secret of secrets) {
    hash.update(`${secret.length} `).update(secret)
    left -= secret.length
    if (left > 0) continue
    left = HASHED_AT_ONCE
    yield
  }
  return hash.digest('base64')
}

function keep(digest: string, matcher: TextMatcher): TextMatcher {
  if (!kept.delete(digest)) kept_bytes += matcher.bytes
  kept.set(digest, matcher)
  for (const [oldest, { bytes }] of kept) {
    if (kept_bytes <= MOST_KEPT_BYTES || oldest === digest) break
    kept.delete(oldest)
    kept_bytes -= bytes
  }
  return matcher
}

/** Made once: followers and readers of a log ask again and again, and its secrets seldom change. */
export function matcherOf(secrets: readonly string[]): TextMatcher {
  const distinct = new Set(secrets)
  const digest = inOnePiece(digestInPieces(distinct))
  return keep(digest, kept.get(digest) ?? createTextMatcher(formsOf(distinct)))
}

/** Matchers that are being made, by their digests. */
const making = new Map<string, Promise<TextMatcher>>()

const make = async (digest: string, secrets: ReadonlySet<string>): Promise<TextMatcher> =>
  keep(digest, await inPieces(textMatcherInPieces(formsOf(secrets)), turn))

/**
 * `redactor`, whose matcher is made a piece at a time where it is not known yet: of the megabyte that
 * variables may have that takes half a second, in which others are served.
 */
export async function redactorSoon(secrets: readonly string[]): Promise<(text: string) => string> {
  const distinct = new Set(secrets)
  const digest = await inPieces(digestInPieces(distinct), turn)
  const known = kept.get(digest)
  if (known) return redactorWith(keep(digest, known))
  const made = making.get(digest) ?? make(digest, distinct).finally(() => making.delete(digest))
  making.set(digest, made)
  return redactorWith(await made)
}

/**
 * Takes known secret values out of a text, also in their base64 (with any user name before them) and
 * URL-encoded forms, those that overlap together. Only whole forms are known, and where the text ends with
 * `CUT_MARK`, its end goes whatever it is: else somebody who prints guesses could read a secret letter by
 * letter. Decision 0096; source: security.md 2.7.
 */
export const redactor = (secrets: readonly string[]): ((text: string) => string) =>
  redactorWith(matcherOf(secrets))

function redactorWith(matcher: TextMatcher): (text: string) => string {
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
