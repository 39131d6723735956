/**
 * Waits until a condition holds, asking again every 25 ms; throws after the time limit. For tests, in place
 * of sleeps.
 */
export async function poll(condition: () => boolean | Promise<boolean>, limit_ms = 60_000): Promise<void> {
  const end = performance.now() + limit_ms
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`the condition did not come true within ${limit_ms} ms`)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}
