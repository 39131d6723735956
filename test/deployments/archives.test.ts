import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pruneArchives } from '#server/deployments/upload'
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
    const row = (upload: string | null, finished_at: string | null) => ({
      request: JSON.stringify(upload ? { upload } : {}),
      finished_at,
      failure: null,
    })
    const rows = [
      row('newest', '2026-01-01'),
      row(null, null),
      row('at work', null),
      row('failed', '2026-01-01'),
      row('newest', '2026-01-01'),
      row('old', '2026-01-01'),
    ]
    for (const name of ['newest', 'at work', 'failed', 'old', 'of another app'])
      writeFileSync(join(uploads, name), '')
    pruneArchives({ history: () => ({ rows, total: 6 }) } as never, uploads, 'app_1')
    expect(readdirSync(uploads).sort()).toEqual(['at work', 'newest', 'of another app'])
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
