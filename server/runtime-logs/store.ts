import { createLogSegments } from '#server/kernel/log-segments'
import type { RuntimeLine } from './schema.ts'

/** Lines are written together after this. */
const FLUSH_MS = 200
const LARGEST_SEGMENT = 1024 * 1024
const SMALLEST_SEGMENT = 64 * 1024
/** Lines of a log that are looked through for how far each instance was read before a restart. */
const KNOWN_LINES = 2_000
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
  let timer: NodeJS.Timeout | undefined

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    for (const [id, lines] of pending) {
      if (segments.append(id, lines)) pending.delete(id)
      else if (lines.length > MOST_PENDING) lines.splice(0, lines.length - MOST_PENDING)
    }
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
      timer ??= setTimeout(flush, FLUSH_MS).unref()
      for (const listener of listeners.get(id) ?? []) listener(full)
    },
    page(id: string, seq: number, limit: number): RuntimeLine[] {
      flush()
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
    readUpTo(id: string): Map<string, Mark> {
      flush()
      const marks = new Map<string, Mark>()
      for (const { instance_id, at, stream } of segments.after(id, latest(id) - KNOWN_LINES, KNOWN_LINES)) {
        if (stream === 'system') continue
        const known = marks.get(instance_id)
        if (!known || at > known.at) marks.set(instance_id, { at, count: 1 })
        else if (at === known.at) known.count += 1
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
