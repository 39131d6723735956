/** Work whose steps end where others may be served. */
export type Steps<T> = Generator<void, T>

/** Does all of it at once. */
export function inOnePiece<T>(work: Steps<T>): T {
  for (;;) {
    const { done, value } = work.next()
    if (done) return value
  }
}

/**
 * Does it with others served in between.
 * @param rest asked after each step: what is waited for before the next one, if anything.
 */
export async function inPieces<T>(work: Steps<T>, rest: () => Promise<void> | undefined): Promise<T> {
  for (;;) {
    const { done, value } = work.next()
    if (done) return value
    const turn = rest()
    if (turn) await turn
  }
}
