/** Takes the processor for longer than a piece of work may last. */
export function toil(): void {
  for (const end = performance.now() + 10; performance.now() < end; );
}

/** How often others came to be served while some work was under way: rounds of the event loop. */
export async function roundsDuring(work: () => Promise<unknown>): Promise<number> {
  let rounds = 0
  let is_under_way = true
  const somebodyElse = () => {
    rounds += 1
    if (is_under_way) setImmediate(somebodyElse)
  }
  setImmediate(somebodyElse)
  await work()
  is_under_way = false
  return rounds
}
