import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { run } from '#server/kernel/process'
import { ROOT } from '#test/support/routes'

it('the supervisor outlives the call that launched it, whatever becomes of the group of that call', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'portreeve-launch-'))
  const argv = ['bash', join(ROOT, 'scripts/shell/launch.sh'), folder, 'portreeve', 'sleep', '60']
  const { exit_code, stderr } = await run(argv, { cwd: '/', env: { PATH: process.env.PATH! } })
  expect([exit_code, stderr]).toEqual([0, ''])
  const pid = Number(readFileSync(join(folder, 'portreeve.pid'), 'utf8'))
  expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).toContain('supervise.sh')
  process.kill(pid, 'SIGTERM')
  await expect
    .poll(
      () => {
        try {
          return process.kill(pid, 0)
        } catch {
          return false
        }
      },
      { timeout: 60_000 },
    )
    .toBe(false)
  rmSync(folder, { recursive: true, force: true })
})
