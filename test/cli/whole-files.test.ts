import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { lockDirectory } from '#server/kernel/lock'
import { ROOT } from '#test/support/routes'
import { guardStart } from '../../cli/upgrade/guard.ts'
import { trialPath, writeWhole } from '../../cli/upgrade/trial.ts'
import { upgrade } from '../../cli/upgrade/upgrade.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ptr-whole-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

it('settings are whole or those from before, also when the disk has room for a part of them only', () => {
  const path = join(folder, 'portreeve.env')
  writeWhole(path, 'before')
  const script = `
    import { writeWhole } from '${join(ROOT, 'cli/upgrade/trial.ts')}'
    writeWhole(process.argv[1], 'x'.repeat(10_000))`
  const node = [process.execPath, '--input-type=module', '-e', script, path]
  // The kernel takes the first bytes and no more, as a full disk does.
  expect(() => execFileSync('prlimit', ['--fsize=4096', '--core=0', ...node], { stdio: 'ignore' })).toThrow()
  expect(readFileSync(path, 'utf8')).toBe('before')
})

it('settings are never written into a file that somebody else has laid there and can read', () => {
  const path = join(folder, 'portreeve.env')
  writeFileSync(`${path}.partial`, '')
  chmodSync(`${path}.partial`, 0o666)
  writeWhole(path, 'x')
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

it('a second upgrade at the same time is refused: both would write to one file', async () => {
  writeFileSync(join(folder, 'portreeve.db'), 'x')
  mkdirSync(join(folder, 'upgrade'))
  const unlock = lockDirectory(join(folder, 'upgrade'))
  try {
    await expect(upgrade({ PORTREEVE_DATA_DIR: folder }, '/nowhere', {})).rejects.toThrow(
      'Another upgrade is under way. Wait until it has ended.',
    )
  } finally {
    unlock()
  }
})

it('a note of an upgrade that is damaged ends the start with a sentence that says which file it is', () => {
  writeWhole(trialPath(folder), '{"state": "do')
  expect(() => guardStart(folder, '0123456789abcdef')).toThrow(
    `${trialPath(folder)} is damaged. It tells how far the last upgrade came: remove it when that is done.`,
  )
})
