import type { Outlet } from './outlet.ts'
import type { Progress } from './turns.ts'

/** One entry of a feed: its place in the order, and what is sent. */
export interface Entry {
  position: number
  type: string
  data: unknown
}

/**
 * Something ordered that is kept and can be read from any position, and that also tells what is new at once.
 */
export interface Source {
  /** Entries after a position, oldest first and at most `limit`; none means that there are no more. */
  after(position: number, limit: number): Entry[]
  subscribe(listener: (entry: Entry) => void): () => void
}

export interface Feed {
  readonly position: number
  /** Sends the next page of what is due, as far as the connection takes it. */
  step(): Progress
  stop(): void
}

/** Entries that are read at once: a few milliseconds of work. */
export const PAGE_SIZE = 100

/**
 * Delivers a source from a position on: first what is kept, page by page, then what is new, without a gap and
 * without a duplicate. When the connection is full it stops delivering, and later reads what it missed from
 * what is kept.
 * @param deliver sends one entry; answers false when the connection is full, so that the entry is not counted
 * as sent.
 * @param outlet whether there is room for an entry now, and whom to tell that there is something to read again: `step`
 * is then called until it is done.
 */
export function createFeed(
  source: Source,
  position: number,
  deliver: (entry: Entry, position: number) => boolean,
  outlet: Pick<Outlet, 'hasRoom' | 'due'>,
): Feed {
  let at = position
  let live = false
  const send = (entry: Entry): boolean => {
    if (!deliver(entry, entry.position)) return false
    at = entry.position
    return true
  }
  const unsubscribe = source.subscribe((entry) => {
    // While behind, the entry is read later from what is kept.
    if (!live || entry.position <= at || send(entry)) return
    live = false
    outlet.due()
  })
  return {
    get position() {
      return at
    },
    step() {
      if (live) return 'done'
      // What is read for somebody who takes nothing is thrown away, and read again.
      if (!outlet.hasRoom()) return 'blocked'
      const page = source.after(at, PAGE_SIZE)
      for (const entry of page) if (!send(entry)) return 'blocked'
      live = page.length === 0
      return live ? 'done' : 'more'
    },
    stop: unsubscribe,
  }
}
