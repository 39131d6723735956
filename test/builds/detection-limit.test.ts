import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createDetection } from '#server/builds/service'
import type { Actor } from '#server/kernel/access'
import { poll } from '#test/support/poll'

let work_directory: string
beforeEach(() => {
  work_directory = mkdtempSync(join(tmpdir(), 'portreeve-detection-'))
})
afterEach(() => rmSync(work_directory, { recursive: true, force: true }))

it('a user who asks for 25 detections at once has one under way and three waiting; the rest is told to come back', async () => {
  let under_way = 0
  let most = 0
  const release: (() => void)[] = []
  const { detect } = createDetection({
    work_directory,
    git: {
      async checkout(_source: unknown, directory: string) {
        mkdirSync(directory)
        under_way += 1
        most = Math.max(most, under_way)
        await new Promise<void>((resolve) => release.push(resolve))
        under_way -= 1
      },
    } as never,
    detect: async () => ({ stack: 'node' }) as never,
    checks: { git_url: () => undefined, branch: () => undefined },
    credential: () => undefined,
  })
  const request = (user_id: string) =>
    detect({ user_id } as Actor, 'prj_1', { git_url: 'https://git.example.com/a/b.git' }).then(
      () => 'answered',
      (error: { code: string }) => error.code,
    )
  const answers = Array.from({ length: 25 }, () => request('usr_1'))
  // Another user does not wait behind them.
  const other = request('usr_2')
  await poll(() => under_way === 2)
  let ended = false
  void Promise.all([...answers, other]).then(() => {
    ended = true
  })
  await poll(() => {
    release.splice(0).forEach((go) => go())
    return ended
  })
  const told = await Promise.all(answers)
  expect(told.filter((one) => one === 'answered')).toHaveLength(4)
  expect(told.filter((one) => one === 'RATE_LIMITED')).toHaveLength(21)
  expect([await other, most]).toEqual(['answered', 2])
})

it('what a process that was killed was looking at goes with the next start, and nothing else', async () => {
  for (const name of ['detect-a1b2c3/source/.git', 'detect-d4e5f6', 'dep_1/source', 'git'])
    mkdirSync(join(work_directory, name), { recursive: true })
  const { removeLeft } = createDetection({ work_directory } as never)
  await removeLeft()
  expect(readdirSync(work_directory).sort()).toEqual(['dep_1', 'git'])
})
