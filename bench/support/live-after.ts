import { median, ms, type Report } from './report.ts'

/** Numbers of routes, and what a change may take in the middle until it is live. */
export const SIZES = [
  { count: 10, limit_ms: 100 },
  { count: 10_000, limit_ms: 250 },
] as const

/** Makes a change over and over; the milliseconds that each took. */
export async function timesOf(turns: number, change: (turn: number) => Promise<void>): Promise<number[]> {
  const took: number[] = []
  for (let turn = 0; turn < turns; turn += 1) {
    const started = performance.now()
    await change(turn)
    took.push(performance.now() - started)
  }
  return took
}

/** The middle one holds the limit; the slowest is said. */
export function checkMiddle(report: Report, name: string, took: readonly number[], limit_ms: number): void {
  report.check(name, median(took) < limit_ms, `${ms(median(took))}, slowest ${ms(Math.max(...took))}`)
}
