import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { type LoopReport, loopFault, readLoopReport } from '#test/support/loop-report'
import { ROOT } from '#test/support/routes'

const calm: LoopReport = { p99_ms: 12, max_ms: 90, ticks: 5000, stalls: [] }

it('work that keeps the main thread is a fault that names the call and the function', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portreeve-probe-'))
  const file = join(folder, 'report.json')
  const at = (path: string) => join(ROOT, 'test/support', path)
  try {
    execFileSync(process.execPath, ['--import', at('loop-probe.ts'), at('samples/stalling.ts')], {
      cwd: ROOT,
      env: { PATH: process.env.PATH, LOOP_PROBE_FILE: file, LOOP_PROBE_PROFILE: '1' },
    })
    const report = readLoopReport(file)!
    const fault = loopFault(report)
    expect(fault).toContain('POST /api/hog')
    expect(fault).toContain('hogTheThread')
    // Half of the time went by in that one piece: somebody who came at any moment found it.
    expect(report.p99_ms).toBeGreaterThan(200)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
it('own work is a fault above 200 ms at the 99th percentile or 300 in one piece; what the machine kept waiting is none', () => {
  const waiting = { stalled_ms: 900, worked_ms: 10, calls: ['deploy.build'], frames: [] }
  expect(loopFault(calm)).toBeUndefined()
  expect(loopFault({ ...calm, stalls: [waiting] })).toBeUndefined()
  const working = { ...waiting, stalled_ms: 190, worked_ms: 180 }
  expect(loopFault({ ...calm, p99_ms: 201, stalls: [working] })).toContain('deploy.build')
  expect(loopFault({ ...calm, stalls: [{ ...waiting, worked_ms: 301 }] })).toContain('301 ms of work')
})
