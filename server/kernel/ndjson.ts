import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

/** Bytes that are read at once; no line of ours is longer than half of it. */
const WINDOW_BYTES = 128 * 1024
const NEWLINE = 0x0a

/** A line that can be looked up: numbers rise from line to line. */
interface Numbered {
  seq: number
}

/**
 * The values of a file that holds one JSON text a line. What cannot be read is left out: the end of the file
 * after a crash may be half a line.
 */
export const parseLines = <T>(text: string): T[] =>
  text.split('\n').flatMap((line) => {
    try {
      return [JSON.parse(line) as T]
    } catch {
      return []
    }
  })

function openIfThere(path: string): { file: number; size: number } | undefined {
  try {
    const file = openSync(path, 'r')
    return { file, size: fstatSync(file).size }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function withFile<T>(path: string, missing: T, work: (file: number, size: number) => T): T {
  const opened = openIfThere(path)
  if (opened === undefined) return missing
  try {
    return work(opened.file, opened.size)
  } finally {
    closeSync(opened.file)
  }
}

function chunkAt(file: number, from: number, bytes = WINDOW_BYTES): Buffer {
  const chunk = Buffer.allocUnsafe(bytes)
  return chunk.subarray(0, readSync(file, chunk, 0, bytes, from))
}

/** Whether a file has lines and ends with a whole one. */
export const endsWhole = (path: string): boolean =>
  withFile(path, false, (file, size) => size > 0 && chunkAt(file, size - 1, 1)[0] === NEWLINE)

/** The first whole line that begins after `from`, with its place. */
function lineAfter<T>(file: number, from: number): { begin: number; line: T } | undefined {
  const chunk = chunkAt(file, from)
  let begin = chunk.indexOf(NEWLINE) + 1
  while (begin > 0) {
    const end = chunk.indexOf(NEWLINE, begin)
    if (end < 0) return undefined
    const [line] = parseLines<T>(chunk.toString('utf8', begin, end))
    if (line) return { begin: from + begin, line }
    begin = end + 1
  }
  return undefined
}

/** A place at which a line begins, at most two windows before the first line after `seq`. */
function placeOf(file: number, size: number, seq: number): number {
  let low = 0
  let high = size
  while (high - low > WINDOW_BYTES) {
    const middle = Math.floor((low + high) / 2)
    const found = lineAfter<Numbered>(file, middle)
    if (found && found.line.seq <= seq) low = found.begin
    else high = middle
  }
  return low
}

/** A place behind all lines before a number, not far from the last of them. */
const endBefore = (file: number, size: number, before: number): number =>
  Math.min(size, placeOf(file, size, before - 1) + 3 * WINDOW_BYTES)

/**
 * Lines after a number, oldest first. Costs the same wherever in the file they stand: who follows a long log
 * page by page holds up nobody else. No more come than take a few milliseconds, since lines may be long: there may
 * then be more than are given, and none means that there are no more.
 */
export const linesAfter = <T extends Numbered>(path: string, seq: number, limit: number): T[] =>
  withFile<T[]>(path, [], (file, size) => {
    let at = placeOf(file, size, seq)
    let rest = Buffer.alloc(0)
    while (at < size) {
      const chunk = chunkAt(file, at)
      if (chunk.length === 0) break
      at += chunk.length
      const text = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk
      const end = at >= size ? text.length : text.lastIndexOf(NEWLINE) + 1
      rest = Buffer.from(text.subarray(end))
      const found = parseLines<T>(text.toString('utf8', 0, end)).filter((line) => line.seq > seq)
      if (found.length > 0) return found.slice(0, limit)
    }
    return []
  })

/**
 * The lines of a file from its end on, the newest first, in pieces of a few milliseconds' work: whoever looks through a
 * long log lets others in between them.
 * @param before lines from this number on are left aside, as far as that saves work; some of them may still come.
 */
export function* linesBackwards<T>(path: string, before = Number.POSITIVE_INFINITY): Generator<T[]> {
  const opened = openIfThere(path)
  if (opened === undefined) return
  const { file, size } = opened
  try {
    let at = before === Number.POSITIVE_INFINITY ? size : endBefore(file, size, before)
    /** The end of a line that begins further to the front. */
    let rest = Buffer.alloc(0)
    while (at > 0) {
      const bytes = Math.min(WINDOW_BYTES, at)
      at -= bytes
      const text = Buffer.concat([chunkAt(file, at, bytes), rest])
      const begin = at === 0 ? 0 : text.indexOf(NEWLINE) + 1
      rest = Buffer.from(text.subarray(0, at > 0 && begin === 0 ? text.length : begin))
      if (at === 0 || begin > 0) yield parseLines<T>(text.toString('utf8', begin)).reverse()
    }
  } finally {
    closeSync(file)
  }
}

/** The newest lines, oldest first; reads from the end of the file as far as it has to. */
export const lastLines = <T>(path: string, count: number): T[] =>
  withFile<T[]>(path, [], (file, size) => {
    const parts: Buffer[] = []
    let from = size
    let newlines = 0
    while (from > 0 && newlines <= count + 1) {
      const bytes = Math.min(WINDOW_BYTES, from)
      from -= bytes
      const chunk = chunkAt(file, from, bytes)
      for (const byte of chunk) if (byte === NEWLINE) newlines += 1
      parts.unshift(chunk)
    }
    const text = Buffer.concat(parts)
    const begin = from === 0 ? 0 : text.indexOf(NEWLINE) + 1
    return parseLines<T>(text.toString('utf8', begin)).slice(-count)
  })
