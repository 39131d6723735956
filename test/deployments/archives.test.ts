import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { archivesKeptBy, pruneArchives } from '#server/deployments/upload'
import { freeForUsers, requireFree } from '#server/kernel/disk-reserve'
import { removeTree } from '#server/kernel/removal'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'archives-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('uploaded archives', () => {
  it('go once something was built from them or never will be; the newest and those that are needed stay', () => {
    const uploads = join(folder, 'uploads')
    mkdirSync(uploads)
    const row = (upload: string, finished_at: string | null, failed_step: string | null = null) => ({
      id: `dep_${upload}`,
      upload,
      finished_at,
      failed_step,
    })
    const rows = [
      row('damaged', '2026-01-01', 'clone'),
      row('newest', '2026-01-01', 'build'),
      row('at work', null),
      row('failed', '2026-01-01'),
      row('newest', '2026-01-01'),
      row('old', '2026-01-01'),
    ]
    for (const name of ['damaged', 'newest', 'at work', 'failed', 'old', 'of another app'])
      writeFileSync(join(uploads, name), '')
    pruneArchives({ archived: () => rows }, uploads, 'app_1')
    expect(readdirSync(uploads).sort()).toEqual(['at work', 'newest', 'of another app'])
    // Without these the history could not tell it any more.
    expect(new Set(archivesKeptBy({ archived: () => rows }, 'app_1'))).toEqual(
      new Set(['dep_newest', 'dep_at work']),
    )
  })
})

describe('the disk', () => {
  it('has a reserve that users cannot fill', () => {
    const { bsize, bavail } = statfsSync(folder)
    const free = freeForUsers(folder)
    expect(free).toBeLessThan(bavail * bsize)
    expect(() => requireFree(folder, free + 1024 ** 3)).toThrow(/kept for Portreeve itself/)
    expect(() => requireFree(folder)).not.toThrow()
  })
  it('is freed of a large folder without anybody waiting: it is out of the way at once', async () => {
    const large = join(folder, 'large')
    mkdirSync(join(large, 'a/b'), { recursive: true })
    for (let n = 0; n < 2000; n += 1) writeFileSync(join(large, 'a/b', `file ${n}`), '')
    const gone = removeTree(large)
    expect(existsSync(large)).toBe(false)
    await gone
    expect(readdirSync(folder).filter((name) => name.startsWith('.removed'))).toEqual([])
    await removeTree(join(folder, 'nothing'))
  })
})
