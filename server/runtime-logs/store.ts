import { createLogSegments } from '#server/kernel/log-segments'
import { createPace } from '#server/kernel/pace'
import type { RuntimeLine } from './schema.ts'

/** Lines are written together after this. */
const FLUSH_MS = 200
const LARGEST_SEGMENT = 1024 * 1024
const SMALLEST_SEGMENT = 64 * 1024
/** Lines of a log that are looked through for how far each instance was read before a restart. */
const KNOWN_LINES = 2_000
/** Lines that are written in one piece: of the longest some milliseconds. */
const WRITTEN_AT_ONCE = 100
/** Of one log that the disk does not take; then the oldest are dropped. */
const MOST_PENDING = 20_000
/** Time of the newest line of an instance that is kept, and how many lines have it. */
export interface Mark {
  at: string
  count: number
}
type Listener = (line: RuntimeLine) => void

/**
 * What instances printed, on disk, by the app or database that they are of.
 * @param max_bytes most that is kept of one of them.
 */
export function createRuntimeStore(directory: string, max_bytes: () => number) {
  const segments = createLogSegments<RuntimeLine>(directory, () => {
    const bytes = Math.min(LARGEST_SEGMENT, Math.max(SMALLEST_SEGMENT, Math.floor(max_bytes() / 8)))
    return { bytes, count: Math.max(1, Math.floor(max_bytes() / bytes)) }
  })
  const pending = new Map<string, RuntimeLine[]>()
  const listeners = new Map<string, Set<Listener>>()
  /** Whether what waits will be written in a moment. */
  let is_due = false

  /** Writes some of what waits of a log; false when it does not take more. */
  function write(id: string): boolean {
    const lines = pending.get(id)
    if (!lines) return false
    const is_written = segments.append(id, lines.slice(0, WRITTEN_AT_ONCE))
    if (is_written) lines.splice(0, WRITTEN_AT_ONCE)
    else if (lines.length > MOST_PENDING) lines.splice(0, lines.length - MOST_PENDING)
    if (lines.length === 0) pending.delete(id)
    return is_written
  }
  /** Writes all that waits of a log, or of all. */
  function flush(...ids: string[]): void {
    for (const id of ids.length > 0 ? ids : [...pending.keys()]) while (write(id));
  }
  /** The same with others served in between: many may print megabytes at the same time. */
  async function flushInPieces(): Promise<void> {
    const pace = createPace('logs')
    for (const id of [...pending.keys()])
      while (write(id)) {
        const rest = pace.rest()
        if (rest) await rest
      }
    is_due = false
    if (pending.size > 0) flushSoon()
  }
  const flushSoon = () => {
    if (is_due) return
    is_due = true
    setTimeout(() => void flushInPieces(), FLUSH_MS).unref()
  }
  const latest = (id: string): number => pending.get(id)?.at(-1)?.seq ?? segments.latest(id)

  return {
    segments,
    flush,
    latest,
    append(id: string, line: Omit<RuntimeLine, 'seq'>): void {
      const full: RuntimeLine = { seq: latest(id) + 1, ...line }
      const lines = pending.get(id)
      if (lines) lines.push(full)
      else pending.set(id, [full])
      flushSoon()
      for (const listener of listeners.get(id) ?? []) listener(full)
    },
    page(id: string, seq: number, limit: number): RuntimeLine[] {
      flush(id)
      return segments.page(id, seq, limit)
    },
    subscribe(id: string, listener: Listener): () => void {
      const set = listeners.get(id) ?? new Set()
      listeners.set(id, set.add(listener))
      return () => {
        set.delete(listener)
        if (set.size === 0) listeners.delete(id)
      }
    },
    /** How far each instance was read. */
    async readUpTo(id: string): Promise<Map<string, Mark>> {
      flush(id)
      const marks = new Map<string, Mark>()
      const pace = createPace(id)
      const oldest = latest(id) - KNOWN_LINES
      for (const lines of segments.backwards(id)) {
        for (const { seq, instance_id, at, stream } of lines) {
          if (seq <= oldest) return marks
          if (stream === 'system') continue
          const known = marks.get(instance_id)
          if (!known || at > known.at) marks.set(instance_id, { at, count: 1 })
          else if (at === known.at) known.count += 1
        }
        const rest = pace.rest()
        if (rest) await rest
      }
      return marks
    },
    remove(id: string): void {
      pending.delete(id)
      segments.remove(id)
    },
  }
}
export type RuntimeStore = ReturnType<typeof createRuntimeStore>
