import { chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { prepareSessions } from '#server/platform/git/work-directory'

const IDENTITY = { uid: 12_346, gid: 12_346 }
const SOMEBODY = 12_345
let work: string
let prefix: string
beforeEach(async () => {
  // Closed to others, as a data folder is, so that sessions are made among temporary files.
  work = mkdtempSync(join(tmpdir(), 'ptr-git-work-'))
  prefix = await prepareSessions(work, IDENTITY)
})
afterEach(() => {
  for (const path of [work, ...['crashed', 'not-owned', 'of-somebody'].map((name) => prefix + name)])
    rmSync(path, { recursive: true, force: true })
})

it('what a crash left among the temporary files is removed, and nothing of other users, whatever its name is', async () => {
  const make = (name: string, owner: number) => {
    mkdirSync(prefix + name)
    writeFileSync(join(prefix + name, 'file'), '')
    chownSync(prefix + name, owner, owner)
  }
  make('crashed', IDENTITY.uid)
  make('not-owned', process.getuid!())
  make('of-somebody', SOMEBODY)
  expect(await prepareSessions(work, IDENTITY)).toBe(prefix)
  expect(['crashed', 'not-owned', 'of-somebody'].map((name) => existsSync(prefix + name))).toEqual([
    false,
    false,
    true,
  ])
})
