import { eventually, type Portreeve } from '#test/support/portreeve'
import { isAlive } from './alive.ts'
import type { Prober } from '#test/support/probe'
import { median, ms, type Report } from './report.ts'

/** Kills of Portreeve at stated points, what was wrong after them, and how long the work took to end. */
export interface Sweep {
  /** What was wrong, as sentences. */
  faults: string[]
  /** Milliseconds from each kill to the end of the work that it interrupted. */
  recoveries: number[]
  /** Runs one crash and prints how it went, so that a long run can be watched. */
  told(point: string, crash: (point: string) => Promise<void>): Promise<void>
  /** The same before and after a step. */
  bothSides(step: string, crash: (point: string) => Promise<void>): Promise<void>
  /** Starts Portreeve so that it dies at a point, gives it the work, and starts it again after its death. */
  dieAt(portreeve: Portreeve, point: string, work: () => Promise<unknown>): Promise<void>
  /** The interrupted work has come to its end. */
  ended(): void
  /** Prints kills and recoveries, and judges faults and the probes. */
  close(prober: Prober): Promise<void>
}

export function createSweep(report: Report): Sweep {
  const faults: string[] = []
  const recoveries: number[] = []
  const told: Sweep['told'] = async (point, crash) => {
    const known = faults.length
    await crash(point).catch((error: unknown) => faults.push(`${point}: ${(error as Error).message}`))
    report.figure(
      point,
      faults.length === known
        ? `recovered in ${ms(recoveries.at(-1) ?? Number.NaN)}`
        : faults.slice(known).join(' | '),
    )
  }
  return {
    faults,
    recoveries,
    told,
    async bothSides(step, crash) {
      for (const side of ['before', 'after']) await told(`${step}:${side}`, crash)
    },
    async dieAt(portreeve, point, work) {
      await portreeve.stop()
      await portreeve.start({ PORTREEVE_CRASH_AT: point })
      await work().catch((error: unknown) => {
        // The answer may be lost with the process; the work was accepted all the same.
        if (!(error instanceof TypeError)) throw error
      })
      await eventually(`The crash at ${point}`, () => (isAlive(portreeve.pid()) ? undefined : true), 60_000)
      recoveries.push(-performance.now())
      await portreeve.start()
    },
    ended() {
      recoveries[recoveries.length - 1]! += performance.now()
    },
    async close(prober) {
      await prober.stop()
      report.figure('kills', recoveries.length)
      report.figure(
        'from the kill to the end of the work: median / longest',
        `${ms(median(recoveries))} / ${ms(Math.max(...recoveries))}`,
      )
      report.figure('probes', prober.sent())
      report.check(
        'failed probes: 0',
        prober.failures().length === 0,
        `${prober.failures().length} ${JSON.stringify(prober.failures().slice(0, 5))}`,
      )
      report.check(
        'after every restart all work ends well and nothing is left over',
        faults.length === 0,
        faults.length === 0 ? 'always' : `\n    ${faults.join('\n    ')}`,
      )
    },
  }
}
