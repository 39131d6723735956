import { writeFileSync } from 'node:fs'
import type { Reporter, TestModule } from 'vitest/node'

/**
 * Writes how long each file took, in seconds and with what it set up, into the file that TEST_SECONDS names:
 * the end of a run shows the longest, which is what `lanes.ts` shares files by.
 */
export default class SecondsReporter implements Reporter {
  readonly #lines: string[] = []

  onTestModuleEnd(module: TestModule): void {
    const { duration, collectDuration } = module.diagnostic()
    this.#lines.push(`${Math.round((duration + collectDuration) / 1000)} ${module.relativeModuleId}`)
  }

  onTestRunEnd(): void {
    const path = process.env.TEST_SECONDS
    if (path) writeFileSync(path, this.#lines.map((line) => `${line}\n`).join(''))
  }
}
