import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { lastLines, linesAfter, parseLines } from '#server/kernel/ndjson'
import type { AccessLine } from './schema.ts'

/**
 * Access logs on disk: per app a folder of at most five files of 2 MiB, each named after the first line in
 * it.
 */
export interface AccessFiles {
  /** Number of the newest line of an app; 0 before the first. */
  latest(app_id: string): number
  /** Appends lines that follow the latest one; false when the disk did not take them. */
  append(app_id: string, lines: readonly AccessLine[]): boolean
  /** Lines after a number, oldest first. */
  after(app_id: string, seq: number, limit: number): AccessLine[]
  /** The newest lines that match, oldest first. */
  newest(
    app_id: string,
    count: number,
    matches: (line: AccessLine) => boolean,
    ended: (line: AccessLine) => boolean,
  ): AccessLine[]
  /** Apps that have a log. */
  apps(): string[]
  remove(app_id: string): void
  /**
   * Removes the oldest files of all apps until no more than so many bytes are left; returns how many went.
   */
  shrink(max_bytes: number): number
}

const SEGMENT_BYTES = 2 * 1024 * 1024
const SEGMENTS = 5
const APP_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/

interface Segment {
  path: string
  first_seq: number
}
interface Open {
  seq: number
  path: string
  bytes: number
}

export function createAccessFiles(directory: string): AccessFiles {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const open = new Map<string, Open>()
  /** The file read last: a client that follows page by page does not parse it anew each time. */
  let recent: { path: string; size: number; lines: AccessLine[] } | undefined

  const folder = (app_id: string): string => {
    if (!APP_ID.test(app_id)) throw new Error('An access log belongs to an app.')
    return join(directory, app_id)
  }
  const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

  function segments(app_id: string): Segment[] {
    const names = statSync(folder(app_id), { throwIfNoEntry: false }) ? readdirSync(folder(app_id)) : []
    return names
      .filter((name) => /^\d{15}\.ndjson$/.test(name))
      .sort()
      .map((name) => ({ path: join(folder(app_id), name), first_seq: Number(name.slice(0, 15)) }))
  }

  function read(path: string): AccessLine[] {
    const size = sizeOf(path)
    if (recent?.path === path && recent.size === size) return recent.lines
    const lines = size === 0 ? [] : parseLines<AccessLine>(readFileSync(path, 'utf8'))
    recent = { path, size, lines }
    return lines
  }

  function opened(app_id: string): Open {
    const known = open.get(app_id)
    if (known) return known
    const last = segments(app_id).at(-1)
    const seq = last ? (lastLines<AccessLine>(last.path, 1)[0]?.seq ?? last.first_seq - 1) : 0
    // A file that ends in half a line is left as it is, and a new one begun.
    const created = { seq, path: '', bytes: 0 }
    if (last && sizeOf(last.path) > 0 && readFileSync(last.path).at(-1) === 0x0a)
      Object.assign(created, { path: last.path, bytes: sizeOf(last.path) })
    open.set(app_id, created)
    return created
  }

  return {
    latest: (app_id) => opened(app_id).seq,
    append(app_id, lines) {
      const file = opened(app_id)
      const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
      try {
        if (file.path === '' || file.bytes + text.length > SEGMENT_BYTES) {
          mkdirSync(folder(app_id), { recursive: true, mode: 0o700 })
          for (const { path } of segments(app_id).slice(0, 1 - SEGMENTS)) rmSync(path, { force: true })
          Object.assign(file, {
            path: join(folder(app_id), `${String(file.seq + 1).padStart(15, '0')}.ndjson`),
            bytes: 0,
          })
        }
        appendFileSync(file.path, text, { mode: 0o600 })
      } catch {
        open.delete(app_id)
        return false
      }
      file.bytes += Buffer.byteLength(text)
      file.seq = lines.at(-1)?.seq ?? file.seq
      return true
    },
    after(app_id, seq, limit) {
      const found: AccessLine[] = []
      const all = segments(app_id)
      const start = Math.max(
        0,
        all.findLastIndex(({ first_seq }) => first_seq <= seq + 1),
      )
      for (const { path } of all.slice(start)) {
        found.push(...linesAfter<AccessLine>(path, seq, limit - found.length))
        if (found.length >= limit) break
      }
      return found
    },
    newest(app_id, count, matches, ended) {
      const found: AccessLine[] = []
      for (const { path } of segments(app_id).reverse()) {
        const lines = read(path)
        for (let index = lines.length - 1; index >= 0; index--) {
          const line = lines[index]!
          if (ended(line)) return found.reverse()
          if (matches(line) && found.push(line) >= count) return found.reverse()
        }
      }
      return found.reverse()
    },
    apps: () =>
      readdirSync(directory, { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map((entry) => entry.name),
    remove(app_id) {
      open.delete(app_id)
      recent = undefined
      rmSync(folder(app_id), { recursive: true, force: true })
    },
    shrink(max_bytes) {
      const all = this.apps()
        .filter((name) => APP_ID.test(name))
        .flatMap((app_id) => segments(app_id).map(({ path }) => ({ app_id, path, ...statSync(path) })))
      let bytes = all.reduce((sum, { size }) => sum + size, 0)
      let removed = 0
      for (const { app_id, path, size } of all.sort((a, b) => a.mtimeMs - b.mtimeMs)) {
        if (bytes <= max_bytes) break
        rmSync(path, { force: true })
        const known = open.get(app_id)
        if (known?.path === path) Object.assign(known, { path: '', bytes: 0 })
        bytes -= size
        removed++
      }
      return removed
    },
  }
}
