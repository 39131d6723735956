/**
 * Figures of a benchmark on standard output, and in the end one verdict: `PASS` or `FAIL` per stated limit.
 */
export interface Report {
  /** One figure without a limit. */
  figure(name: string, value: string | number): void
  /** One figure that must hold its limit. */
  check(name: string, holds: boolean, found: string): void
  /** Prints the verdict; the exit code is 1 when a limit was missed. */
  end(): void
}

const WIDTH = 58

export function createReport(title: string): Report {
  const verdicts: { name: string; holds: boolean }[] = []
  console.log(title)
  return {
    figure: (name, value) => console.log(`  ${name.padEnd(WIDTH)} ${value}`),
    check(name, holds, found) {
      verdicts.push({ name, holds })
      console.log(`  ${name.padEnd(WIDTH)} ${found}  ${holds ? 'PASS' : 'FAIL'}`)
    },
    end() {
      const missed = verdicts.filter(({ holds }) => !holds)
      console.log(
        missed.length === 0
          ? `PASS: ${verdicts.length} of ${verdicts.length} limits hold.`
          : `FAIL: ${missed.map(({ name }) => name).join('; ')}.`,
      )
      if (missed.length > 0) process.exitCode = 1
    },
  }
}

/** The middle value; the mean of the two middle ones. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1
    ? sorted[middle]!
    : ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2
}

export const ms = (value: number): string => `${value < 10 ? value.toFixed(2) : value.toFixed(0)} ms`

const ONLY = /^--only=(.+)$/

/** What `--only=<text>` names: parts of a long experiment that are to run alone. */
export const onlyOption = (): string =>
  process.argv.flatMap((argument) => ONLY.exec(argument)?.[1] ?? []).at(-1) ?? ''

/** Numbers from the command line: `--deploys=20`. Throws for an option that the benchmark does not know. */
export function numberOptions<K extends string>(defaults: Record<K, number>): Record<K, number> {
  const options = { ...defaults }
  for (const argument of process.argv.slice(2)) {
    if (ONLY.test(argument)) continue
    const [, name = '', value = ''] = /^--([a-z_]+)=(\d+(?:\.\d+)?)$/.exec(argument) ?? []
    if (!(name in defaults))
      throw new Error(
        `${argument} is none of ${Object.keys(defaults)
          .map((key) => `--${key}=<number>`)
          .join(', ')}.`,
      )
    options[name as K] = Number(value)
  }
  return options
}
