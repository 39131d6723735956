import { nextTask } from './tasks.ts'

/** How long one slice of a search holds the page up, in milliseconds. */
const SLICE_MS = 10
/** Entries between two looks at the clock. */
const STRIDE = 100

export type Fits<Entry> = (entry: Entry) => boolean

/**
 * Finds what fits among very many entries, a slice at a time, so that typing is never held up. What was found
 * before stays until all of the next answer is known; entries that came at the end are looked at alone.
 * @param publish gets each complete answer; the array may grow later.
 * @param tools the clock and what is waited for between two slices.
 */
export function createSlicedFilter<Entry>(
  publish: (found: readonly Entry[]) => void,
  tools = { now: () => performance.now(), pause: nextTask },
) {
  let entries: readonly Entry[] = []
  let fits: Fits<Entry> | undefined
  let found: Entry[] = []
  let at = 0
  let first: Entry | undefined
  let last: Entry | undefined
  /** Tells a search that is under way that another one took its place. */
  let turn = 0

  function restart() {
    found = []
    at = 0
  }
  /** Looks at entries until the slice is over; whether all are looked at. */
  function slice(test: Fits<Entry>): boolean {
    const until = tools.now() + SLICE_MS
    while (at < entries.length) {
      const entry = entries[at]!
      if (test(entry)) found.push(entry)
      at += 1
      if (at % STRIDE === 0 && tools.now() >= until) break
    }
    first = entries[0]
    last = entries[at - 1]
    return at >= entries.length
  }
  async function search(test: Fits<Entry>) {
    turn += 1
    const own = turn
    while (!slice(test)) {
      await tools.pause()
      if (own !== turn) return
    }
    publish(found)
  }
  /** Goes on behind the last entry that was looked at; from the start when others were put before it. */
  function resume() {
    if (at === 0 || entries[0] === first) return
    const was_dropped = !entries.includes(first!)
    const next = was_dropped ? entries.lastIndexOf(last!) + 1 : 0
    if (next === 0) return restart()
    at = next
    // Of what was found, the oldest may be gone by now; more than there are entries is never kept.
    if (found.length > entries.length) found.splice(0, found.length - entries.length)
  }

  return {
    /** Call it whenever the entries changed in place, or the question did; no question finds all. */
    update(all: readonly Entry[], question: Fits<Entry> | undefined): void {
      if (all !== entries || question !== fits) restart()
      entries = all
      fits = question
      if (question) {
        resume()
        void search(question)
      } else {
        turn += 1
        publish(all)
      }
    },
    /** Ends a search that is under way; nothing is published any more. */
    stop: () => void (turn += 1),
  }
}
