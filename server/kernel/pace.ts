import { createLines } from './lines.ts'

/** Work of one piece; whoever else waits to be served waits for a few of these at most. */
const PIECE_MS = 8

/** Who waits to go on, by those for whom the work is done. */
const lines = createLines()
let planned = false

function plan(): void {
  if (planned || lines.isEmpty()) return
  planned = true
  setImmediate(next)
}
/** One goes on in each round of the event loop, however many wait: together they are no longer than one. */
function next(): void {
  planned = false
  const goOn = lines.next()
  plan()
  goOn?.()
}

/** Says when work in one piece was long enough. */
export interface Pace {
  /**
   * Asked after each small part of the work: undefined while it may go on, else resolves when it is its turn again,
   * with others served in between.
   */
  rest(): Promise<void> | undefined
  /** Lets others in, however short the work was. */
  pause(): Promise<void>
}

/**
 * For work that grows with what a user keeps or asks for.
 * @param owner for whom it is done: those who wait take turns by owner.
 */
export function createPace(owner: string, now: () => number = () => performance.now()): Pace {
  let began = now()
  const pause = () =>
    new Promise<void>((resolve) => {
      lines.join(owner, () => {
        began = now()
        resolve()
      })
      plan()
    })
  return { pause, rest: () => (now() - began < PIECE_MS ? undefined : pause()) }
}

/** What `map` makes of a list, in pieces of work. */
export async function mapInPieces<T, R>(owner: string, list: readonly T[], map: (one: T) => R): Promise<R[]> {
  const pace = createPace(owner)
  const made: R[] = []
  for (const one of list) {
    made.push(map(one))
    const rest = pace.rest()
    if (rest) await rest
  }
  return made
}
