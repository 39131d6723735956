/** Does one piece of work after the other, in the order in which callers came. */
export type InTurn = <T>(work: () => Promise<T>) => Promise<T>

/** Lets callers take turns at what the engine refuses, or does wrongly, for two at a time. */
export function createTurn(): InTurn {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const result = last.then(work)
    last = result.catch(() => undefined)
    return result
  }
}
