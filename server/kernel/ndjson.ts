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

function withFile<T>(path: string, missing: T, work: (file: number, size: number) => T): T {
  let file: number
  try {
    file = openSync(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return missing
    throw error
  }
  try {
    return work(file, fstatSync(file).size)
  } finally {
    closeSync(file)
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

/**
 * Lines after a number, oldest first. Costs the same wherever in the file they stand: who follows a long log
 * page by page holds up nobody else.
 * @param in_one_piece no more than takes a few milliseconds, since lines may be long: there may then be more than
 * are given, and none means that there are no more.
 */
export const linesAfter = <T extends Numbered>(
  path: string,
  seq: number,
  limit: number,
  in_one_piece = false,
): T[] =>
  withFile<T[]>(path, [], (file, size) => {
    const found: T[] = []
    let at = placeOf(file, size, seq)
    let rest = Buffer.alloc(0)
    while (at < size) {
      const chunk = chunkAt(file, at)
      if (chunk.length === 0) break
      at += chunk.length
      const text = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk
      const end = at >= size ? text.length : text.lastIndexOf(NEWLINE) + 1
      rest = Buffer.from(text.subarray(end))
      for (const line of parseLines<T>(text.toString('utf8', 0, end))) {
        if (!(line.seq > seq)) continue
        found.push(line)
        if (found.length >= limit) return found
      }
      if (in_one_piece && found.length > 0) break
    }
    return found
  })

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
