import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { raiseWatchLimits } from '#server/platform/host-rules/watch-limits'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portreeve-inotify-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const set = (instances: number, watches: number) => {
  writeFileSync(join(folder, 'max_user_instances'), `${instances}\n`)
  writeFileSync(join(folder, 'max_user_watches'), `${watches}\n`)
}
const limits = () =>
  ['max_user_instances', 'max_user_watches'].map((name) => Number(readFileSync(join(folder, name), 'utf8')))

describe('watches on files, which containers and this machine count together', () => {
  it('are so many that the memory of a container ends before them', () => {
    set(128, 192_536)
    raiseWatchLimits(folder)
    expect(limits()).toEqual([2 ** 24, 2 ** 24])
  })
  it('stay what an operator has set above that', () => {
    set(2 ** 30, 2 ** 25)
    raiseWatchLimits(folder)
    expect(limits()).toEqual([2 ** 30, 2 ** 25])
  })
})
