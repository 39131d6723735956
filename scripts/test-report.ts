import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'

/** What tests came to; `problems` are sentences about what failed besides single tests. */
export interface Tally {
  passed: number
  failed: number
  skipped: number
  problems: string[]
}

interface FileResult {
  name?: string
  status?: string
  message?: string
  assertionResults?: TestResult[]
}
interface TestResult {
  fullName?: string
  status?: string
  failureMessages?: string[]
}
interface Report {
  success?: boolean
  numPassedTests?: number
  numFailedTests?: number
  numPendingTests?: number
  numTodoTests?: number
  testResults?: FileResult[]
}

/** Lines of a failure that are repeated at the end: what was expected, and where. */
const REPEATED_LINES = 12

/**
 * The tests of a file that failed, each with the beginning of what it said: the end of a log is what is
 * kept of a long run, and the place of the failure may be 20 minutes further up.
 */
function failuresOf(file: FileResult): string[] {
  return (file.assertionResults ?? [])
    .filter((test) => test.status === 'failed')
    .map((test) => {
      const said = (test.failureMessages ?? []).join('\n').split('\n').slice(0, REPEATED_LINES)
      return [`${file.name ?? 'a test file'} > ${test.fullName ?? 'a test'}`, ...said].join('\n  ')
    })
}

/**
 * Counts one JSON report of vitest. A file that could not even be loaded has no tests in the report, so it
 * counts as one failure, as does one whose set-up or clean-up failed, and a run that says it failed without
 * naming a test, for example after an unhandled rejection.
 */
export function tallyReport(text: string, name: string): Tally {
  const report = JSON.parse(text) as Report
  const broken = (report.testResults ?? []).filter(
    (file) => file.status === 'failed' && failuresOf(file).length === 0,
  )
  const problems = broken.map((file) => {
    const what = (file.assertionResults ?? []).length === 0 ? 'could not be run' : 'failed around its tests'
    return `${file.name ?? 'a test file'} ${what}: ${(file.message ?? '').split('\n')[0] ?? ''}`
  })
  const named = report.numFailedTests ?? 0
  const unnamed = report.success === false && named === 0 && broken.length === 0 ? 1 : 0
  if (unnamed > 0) problems.push(`The run ${name} failed outside of a test; see the error above.`)
  return {
    passed: report.numPassedTests ?? 0,
    failed: named + broken.length + unnamed,
    skipped: (report.numPendingTests ?? 0) + (report.numTodoTests ?? 0),
    problems: [...problems, ...(report.testResults ?? []).flatMap(failuresOf)],
  }
}

/** Adds up several runs. No test at all is a failure: a green run has to mean that something was tested. */
export function addUp(tallies: readonly Tally[]): Tally {
  const sum = tallies.reduce<Tally>(
    (total, one) => ({
      passed: total.passed + one.passed,
      failed: total.failed + one.failed,
      skipped: total.skipped + one.skipped,
      problems: [...total.problems, ...one.problems],
    }),
    { passed: 0, failed: 0, skipped: 0, problems: [] },
  )
  if (sum.passed + sum.failed > 0) return sum
  return { ...sum, failed: 1, problems: [...sum.problems, 'No test ran.'] }
}

/** The last line that a run prints. */
export const tallyLine = ({ passed, failed, skipped }: Tally): string =>
  `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`

/** Reads a report that should exist; a missing or broken one means that the run died. */
async function readTally(path: string): Promise<Tally> {
  const name = basename(path, '.json')
  try {
    return tallyReport(await readFile(path, 'utf8'), name)
  } catch (error) {
    return {
      passed: 0,
      failed: 1,
      skipped: 0,
      problems: [
        `The run ${name} left no readable report: ${error instanceof Error ? error.message : String(error)}`,
      ],
    }
  }
}

if (import.meta.main) {
  // Arguments: reports of vitest, and `failed:<sentence>` for steps that failed before or beside the tests.
  const tallies = await Promise.all(
    process.argv
      .slice(2)
      .map((argument) =>
        argument.startsWith('failed:')
          ? { passed: 0, failed: 1, skipped: 0, problems: [argument.slice('failed:'.length)] }
          : readTally(argument),
      ),
  )
  const sum = addUp(tallies)
  for (const problem of sum.problems) process.stdout.write(`problem: ${problem}\n`)
  process.stdout.write(`${tallyLine(sum)}\n`)
  process.exitCode = sum.failed === 0 ? 0 : 1
}
