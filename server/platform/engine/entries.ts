import { tooLarge, unreadable } from './failures.ts'

/** What is kept of an entry of a list. @param list the list's key in the answer; empty where the answer is one. */
export type KeepEntry = (entry: unknown, list: string) => unknown

const MIB = 1024 ** 2
/** What an answer has at most; what has more is not one of the engine's. */
export interface AnswerBounds {
  /** Bytes of an entry, of what is around the lists, and of an answer that is read as a whole. */
  piece_bytes: number
  /** Bytes of one that is read entry by entry. */
  bytes: number
  /** Entries of all its lists. */
  entries: number
  /** Whether each piece of it may take as long as all of another one. */
  takes_time: boolean
}
/** Of the engine of this machine, which may have more than anybody thought of. */
export const OWN_BOUNDS: AnswerBounds = {
  piece_bytes: 64 * MIB,
  bytes: Number.POSITIVE_INFINITY,
  entries: Number.POSITIVE_INFINITY,
  takes_time: true,
}
/** Of the engine of another machine: whoever took that over would have this one read, and keep, without an end. */
export const OTHERS_BOUNDS: AnswerBounds = {
  piece_bytes: 8 * MIB,
  bytes: 64 * MIB,
  entries: 10_000,
  takes_time: false,
}
const [QUOTE, BACKSLASH, COMMA] = [34, 92, 44]
const [ARRAY, ARRAY_END, OBJECT, OBJECT_END] = [91, 93, 123, 125]
const LONGEST_KEY = 200
/** The key of a list that begins at the end of a text. */
const KEY = /"([^"\\]+)"\s*:\s*\[$/

function backslashesBefore(chunk: Buffer, end: number, from: number): number {
  let first = end
  while (first > from && chunk[first - 1] === BACKSLASH) first -= 1
  return end - first
}

/** Bytes that came in several chunks. */
function createPiece(most_bytes: number) {
  let parts: Buffer[] = []
  let size = 0
  return {
    add(part: Buffer): void {
      size += part.length
      if (size > most_bytes) throw tooLarge()
      if (part.length > 0) parts.push(part)
    },
    /** The end of it, as long as a key may be. */
    tail: () => Buffer.concat(parts).subarray(-LONGEST_KEY).toString('utf8'),
    take(): string {
      const text = Buffer.concat(parts).toString('utf8')
      parts = []
      size = 0
      return text
    },
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw unreadable(error)
  }
}

/**
 * Takes a JSON answer apart as it comes: what is kept of the entries of its lists (its own, or those directly in it),
 * and the text around them. What images say of themselves is in each entry that is about one, so that the list of
 * all of them may be longer than anybody should hold, or read in one go.
 */
export function createEntries(keep: KeepEntry, bounds: AnswerBounds = OWN_BOUNDS) {
  const lists = new Map<string, unknown[]>()
  const around = createPiece(bounds.piece_bytes)
  const entry = createPiece(bounds.piece_bytes)
  let bytes = 0
  let entries = 0
  let list: { name: string; depth: number; kept: unknown[] } | undefined
  let depth = 0
  let begins_with = 0
  let in_text = false
  let is_escaped = false

  function endEntry(): void {
    const text = entry.take()
    if (++entries > bounds.entries) throw tooLarge()
    if (text.trim() !== '') list!.kept.push(keep(parsed(text), list!.name))
  }
  /** Where it goes on after a text of which more stands at a place. Most of an answer is texts. */
  function skipText(chunk: Buffer, at: number): number {
    let from = is_escaped ? at + 1 : at
    is_escaped = false
    in_text = true
    for (;;) {
      const quote = chunk.indexOf(QUOTE, from)
      const end = quote < 0 ? chunk.length : quote
      const has_escape = backslashesBefore(chunk, end, from) % 2 === 1
      if (quote < 0) {
        is_escaped = has_escape
        return end
      }
      in_text = has_escape
      if (!in_text) return end + 1
      from = end + 1
    }
  }
  const isList = () => !list && (depth === 1 || (depth === 2 && begins_with === OBJECT))

  function take(chunk: Buffer): void {
    if ((bytes += chunk.length) > bounds.bytes) throw tooLarge()
    let from = 0
    const cut = (to: number, next: number) => {
      ;(list ? entry : around).add(chunk.subarray(from, to))
      from = next
    }
    for (let at = in_text ? skipText(chunk, 0) : 0; at < chunk.length; at++) {
      const byte = chunk[at]!
      if (byte === QUOTE) at = skipText(chunk, at + 1) - 1
      else if (byte === ARRAY || byte === OBJECT) {
        if (depth++ === 0) begins_with = byte
        if (byte === OBJECT || !isList()) continue
        cut(at + 1, at + 1)
        list = { name: KEY.exec(around.tail())?.[1] ?? '', depth, kept: [] }
      } else if (byte === ARRAY_END || byte === OBJECT_END) {
        if (depth-- !== list?.depth) continue
        cut(at, at)
        endEntry()
        lists.set(list.name, list.kept)
        list = undefined
      } else if (byte === COMMA && depth === list?.depth) {
        cut(at, at + 1)
        endEntry()
      }
    }
    cut(chunk.length, chunk.length)
  }

  return {
    take,
    /** The text around the lists, in which they are empty. */
    rest: () => around.take(),
    /** The answer that was read of that text, with what was kept in its lists. */
    fill: (answer: unknown): unknown =>
      Array.isArray(answer) ? (lists.get('') ?? []) : Object.assign(answer ?? {}, Object.fromEntries(lists)),
  }
}
