import { mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { freeForBackups, freeForUsers } from '#server/kernel/disk-reserve'

it('backups fill a disk no further than to a whole reserve before apps are stopped for it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portreeve-reserve-'))
  const { bsize, blocks } = statfsSync(folder)
  const reserve = Math.min(1024 ** 3, bsize * blocks * 0.05)
  // Others write to this disk, too.
  expect(freeForUsers(folder) - freeForBackups(folder)).toBeGreaterThan(reserve / 2)
  rmSync(folder, { recursive: true })
})
