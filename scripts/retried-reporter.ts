import type { Reporter, TestCase } from 'vitest/node'

/** Characters of each reason. */
const MOST_SHOWN = 500

/** Names the tests that passed only when they were tried again, and why, so that none of them hides. */
export default class RetriedReporter implements Reporter {
  readonly #retried: string[] = []

  onTestCaseResult(test: TestCase): void {
    const attempts = test.diagnostic()?.retryCount ?? 0
    if (attempts === 0) return
    const reasons = (test.result().errors ?? []).map(({ message }) => `\n    ${message.slice(0, MOST_SHOWN)}`)
    this.#retried.push(`${test.fullName} (${test.module.relativeModuleId}): ${attempts}${reasons.join('')}`)
  }

  onTestRunEnd(): void {
    if (this.#retried.length === 0) return
    process.stdout.write(
      `Tests that needed another attempt:\n${this.#retried.map((line) => `  ${line}\n`).join('')}`,
    )
  }
}
