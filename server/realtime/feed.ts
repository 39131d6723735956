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
  /** How many entries are read at once; more where a read costs the same whatever it answers. */
  page_size: number
  /** Entries after a position, oldest first; fewer than `limit` means that there are no more. */
  after(position: number, limit: number): Entry[]
  subscribe(listener: (entry: Entry) => void): () => void
}

export interface Feed {
  readonly position: number
  /** Sends what is due as far as the connection takes it. */
  pump(): void
  stop(): void
}

/**
 * Delivers a source from a position on: first what is kept, then what is new, without a gap and without a
 * duplicate. When the connection is full it stops delivering, and later reads what it missed from what is
 * kept.
 * @param deliver sends one entry; answers false when the connection is full, so that the entry is not counted
 * as sent.
 */
export function createFeed(
  source: Source,
  position: number,
  deliver: (entry: Entry, position: number) => boolean,
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
    if (live && entry.position > at && !send(entry)) live = false
  })
  return {
    get position() {
      return at
    },
    pump() {
      while (!live) {
        const page = source.after(at, source.page_size)
        for (const entry of page) if (!send(entry)) return
        live = page.length < source.page_size
      }
    },
    stop: unsubscribe,
  }
}
