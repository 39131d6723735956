import { appendFileSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as pause } from 'node:timers/promises'
import { endsWhole, lastLines, linesAfter, linesBackwards } from './ndjson.ts'
import { createPace } from './pace.ts'

/** One line; `seq` counts within its log from 1. */
export interface NumberedLine {
  seq: number
}
/** How much is kept of one log. */
export interface SegmentLimits {
  /** Bytes of one file. */
  bytes: number
  /** Files of one log. */
  count: number
}

/**
 * Logs on disk, each a folder of a bounded number of files, named after the first line in them. The oldest file
 * goes when the newest is full.
 */
export interface LogSegments<T extends NumberedLine> {
  /** Number of the newest line of a log; 0 before the first. */
  latest(id: string): number
  /** Appends lines that follow the latest one; false when the disk did not take them. */
  append(id: string, lines: readonly T[]): boolean
  /** Lines after a number, oldest first, no more than can be worked on in one piece: none means that there are no more. */
  page(id: string, seq: number, limit: number): T[]
  /** The newest lines that match, oldest first; others are served meanwhile. */
  newest(id: string, count: number, matches: (line: T) => boolean, ended: (line: T) => boolean): Promise<T[]>
  /**
   * The lines of a log, the newest first, each time as many as can be worked on in one piece: read as far as somebody
   * asks, who lets others in between.
   * @param before lines from this number on are left aside, as far as that saves work.
   */
  backwards(id: string, before?: number): Generator<readonly T[]>
  /** What has a log. */
  ids(): string[]
  /** What has a log that was added to since a time (ms). */
  idsSince(after_ms: number): Promise<string[]>
  remove(id: string): void
  /**
   * Removes files until no more than so many bytes are left of all logs, each time the oldest of whoever has most;
   * returns how many went. By age alone, who writes much would push out what others wrote long before.
   * @param ownerOf whose log it is.
   */
  shrink(max_bytes: number, ownerOf: (id: string) => string): Promise<number>
  /** Removes files that nothing was added to since a time (ms); returns how many went. */
  prune(before_ms: number): Promise<number>
}

const ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/

interface Segment {
  path: string
  first_seq: number
}
interface Open {
  seq: number
  path: string
  bytes: number
}
const sumOf = (parts: readonly { bytes: number }[]): number =>
  parts.reduce((sum, { bytes }) => sum + bytes, 0)

export function createLogSegments<T extends NumberedLine>(
  directory: string,
  limits: () => SegmentLimits,
): LogSegments<T> {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const open = new Map<string, Open>()

  const folder = (id: string): string => {
    if (!ID.test(id)) throw new Error('A log belongs to a resource.')
    return join(directory, id)
  }
  const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

  function segments(id: string): Segment[] {
    const names = statSync(folder(id), { throwIfNoEntry: false }) ? readdirSync(folder(id)) : []
    return names
      .filter((name) => /^\d{15}\.ndjson$/.test(name))
      .sort()
      .map((name) => ({ path: join(folder(id), name), first_seq: Number(name.slice(0, 15)) }))
  }

  /** The file that the line after a number is in, and those that follow it. */
  function segmentsFrom(id: string, seq: number): Segment[] {
    const all = segments(id)
    return all.slice(
      Math.max(
        0,
        all.findLastIndex(({ first_seq }) => first_seq <= seq + 1),
      ),
    )
  }

  function opened(id: string): Open {
    const known = open.get(id)
    if (known) return known
    const last = segments(id).at(-1)
    const seq = last ? (lastLines<T>(last.path, 1)[0]?.seq ?? last.first_seq - 1) : 0
    // A file that ends in half a line is left as it is, and a new one begun.
    const created = { seq, path: '', bytes: 0 }
    if (last && endsWhole(last.path)) Object.assign(created, { path: last.path, bytes: sizeOf(last.path) })
    open.set(id, created)
    return created
  }

  const forget = (id: string, path: string): void => {
    rmSync(path, { force: true })
    const known = open.get(id)
    if (known?.path === path) Object.assign(known, { path: '', bytes: 0 })
  }
  /** The files of all logs, one log after the other, with others served in between: there may be thousands. */
  async function* files(ids: string[]) {
    for (const id of ids) {
      if (!ID.test(id)) continue
      yield segments(id).flatMap(({ path }) => {
        const found = statSync(path, { throwIfNoEntry: false })
        return found ? [{ id, path, bytes: found.size, mtimeMs: found.mtimeMs }] : []
      })
      await pause()
    }
  }

  return {
    latest: (id) => opened(id).seq,
    append(id, all) {
      let file: Open
      try {
        file = opened(id)
      } catch {
        return false
      }
      // What was taken before the disk took no more is not written twice.
      const lines = all.filter(({ seq }) => seq > file.seq)
      const { bytes, count } = limits()
      const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
      if (text.length > bytes && lines.length > 1) {
        // More than one file holds: halves of it, so that none outgrows its bound.
        const half = Math.ceil(lines.length / 2)
        return this.append(id, lines.slice(0, half)) && this.append(id, lines.slice(half))
      }
      try {
        if (file.path === '' || file.bytes + text.length > bytes) {
          mkdirSync(folder(id), { recursive: true, mode: 0o700 })
          for (const { path } of segments(id).slice(0, 1 - count)) rmSync(path, { force: true })
          Object.assign(file, {
            path: join(folder(id), `${String(file.seq + 1).padStart(15, '0')}.ndjson`),
            bytes: 0,
          })
        }
        appendFileSync(file.path, text, { mode: 0o600 })
      } catch {
        open.delete(id)
        return false
      }
      file.bytes += Buffer.byteLength(text)
      file.seq = lines.at(-1)?.seq ?? file.seq
      return true
    },
    page(id, seq, limit) {
      for (const { path } of segmentsFrom(id, seq)) {
        const found = linesAfter<T>(path, seq, limit)
        if (found.length > 0) return found
      }
      return []
    },
    *backwards(id, before = Number.POSITIVE_INFINITY) {
      for (const { path, first_seq } of segments(id).reverse())
        if (first_seq < before) yield* linesBackwards<T>(path, before)
    },
    async newest(id, count, matches, ended) {
      const found: T[] = []
      const pace = createPace(id)
      for (const lines of this.backwards(id)) {
        for (const line of lines) {
          const rest = pace.rest()
          if (rest) await rest
          if (ended(line)) return found.reverse()
          if (matches(line) && found.push(line) >= count) return found.reverse()
        }
      }
      return found.reverse()
    },
    ids: () =>
      readdirSync(directory, { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map((entry) => entry.name),
    async idsSince(after_ms) {
      const found: string[] = []
      for await (const of_one of files(this.ids()))
        if (of_one.some(({ mtimeMs }) => mtimeMs >= after_ms)) found.push(of_one[0]!.id)
      return found
    },
    remove(id) {
      open.delete(id)
      rmSync(folder(id), { recursive: true, force: true })
    },
    async shrink(max_bytes, ownerOf) {
      const all: { id: string; path: string; bytes: number; mtimeMs: number }[] = []
      for await (const of_one of files(this.ids())) all.push(...of_one)
      // The oldest last, from where they are taken.
      const owned = [
        ...Map.groupBy(
          all.sort((a, b) => b.mtimeMs - a.mtimeMs),
          ({ id }) => ownerOf(id),
        ).values(),
      ]
      const owners = owned.map((oldest_last) => ({ oldest_last, bytes: sumOf(oldest_last) }))
      let removed = 0
      for (let bytes = sumOf(owners); bytes > max_bytes; removed++) {
        const largest = owners.reduce((one, other) => (other.bytes > one.bytes ? other : one))
        const oldest = largest.oldest_last.pop()!
        forget(oldest.id, oldest.path)
        largest.bytes -= oldest.bytes
        bytes -= oldest.bytes
        await pause()
      }
      return removed
    },
    async prune(before_ms) {
      let count = 0
      for await (const of_one of files(this.ids())) {
        const old = of_one.filter(({ mtimeMs, bytes }) => bytes > 0 && mtimeMs < before_ms)
        for (const { id, path } of old) {
          const seq = opened(id).seq
          forget(id, path)
          // An empty file goes on counting: cursors of before stay behind what comes.
          if (segments(id).length === 0)
            appendFileSync(join(folder(id), `${String(seq + 1).padStart(15, '0')}.ndjson`), '', {
              mode: 0o600,
            })
        }
        count += old.length
      }
      return count
    },
  }
}
