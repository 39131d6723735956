import { describe, expect, test } from 'vitest'
import { addUp, tallyLine, tallyReport } from '../../scripts/test-report.ts'

const report = (facts: object): string =>
  JSON.stringify({
    success: true,
    numPassedTests: 0,
    numFailedTests: 0,
    numPendingTests: 0,
    testResults: [],
    ...facts,
  })

describe('the last line of a test run', () => {
  test('adds up what the runs report', () => {
    const sum = addUp([
      tallyReport(report({ numPassedTests: 5 }), 'unit'),
      tallyReport(
        report({ numPassedTests: 2, numFailedTests: 1, numPendingTests: 3, success: false }),
        'e2e',
      ),
    ])
    expect(tallyLine(sum)).toBe('7 passed, 1 failed, 3 skipped')
  })
  test('leaves out skipped tests when there are none', () => {
    expect(tallyLine(addUp([tallyReport(report({ numPassedTests: 5 }), 'unit')]))).toBe('5 passed, 0 failed')
  })
  test('a run without a single test is not green', () => {
    expect(addUp([tallyReport(report({}), 'unit')])).toMatchObject({
      passed: 0,
      failed: 1,
      problems: ['No test ran.'],
    })
    expect(addUp([])).toMatchObject({ failed: 1 })
  })
  test('only skipped tests are not green either', () => {
    expect(addUp([tallyReport(report({ numPendingTests: 9 }), 'unit')]).failed).toBe(1)
  })
  test('a failed test is named again with the beginning of what it said', () => {
    const tally = tallyReport(
      report({
        numPassedTests: 1,
        numFailedTests: 1,
        success: false,
        testResults: [
          {
            name: 'a.test.ts',
            status: 'failed',
            assertionResults: [
              { fullName: 'a works', status: 'passed' },
              { fullName: 'b works', status: 'failed', failureMessages: ['expected 1\nto be 2'] },
            ],
          },
        ],
      }),
      'unit',
    )
    expect(tally).toMatchObject({
      failed: 1,
      problems: ['a.test.ts > b works\n  expected 1\n  to be 2'],
    })
  })
  test('a file whose clean-up failed after all of its tests counts as a failure', () => {
    const tally = tallyReport(
      report({
        numPassedTests: 1,
        success: false,
        testResults: [
          {
            name: 'a.test.ts',
            status: 'failed',
            message: 'The main thread answered nobody',
            assertionResults: [{ fullName: 'a works', status: 'passed' }],
          },
        ],
      }),
      'e2e',
    )
    expect(tally).toMatchObject({
      passed: 1,
      failed: 1,
      problems: ['a.test.ts failed around its tests: The main thread answered nobody'],
    })
  })
  test('a file that does not load counts as a failure although no test of it is in the report', () => {
    const tally = tallyReport(
      report({
        numPassedTests: 5,
        success: false,
        testResults: [
          {
            name: 'a.test.ts',
            status: 'failed',
            message: 'Cannot find x\nmore',
            assertionResults: [],
          },
        ],
      }),
      'unit',
    )
    expect(tally).toMatchObject({
      passed: 5,
      failed: 1,
      problems: ['a.test.ts could not be run: Cannot find x'],
    })
  })
  test('a run that fails outside of any test counts as a failure', () => {
    expect(tallyReport(report({ numPassedTests: 5, success: false }), 'unit')).toMatchObject({
      passed: 5,
      failed: 1,
    })
  })
})
