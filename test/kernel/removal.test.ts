import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { removeTree } from '#server/kernel/removal'

let top: string
beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), 'portreeve-removal-'))
})
afterEach(() => rmSync(top, { recursive: true, force: true }))

/** A folder of so many files in folders of ten, with a link to something outside of it. */
function grow(files: number): string {
  const tree = join(top, 'tree')
  mkdirSync(join(top, 'outside'))
  writeFileSync(join(top, 'outside', 'kept'), 'still here')
  for (let index = 0; index < files; index++) {
    const folder = join(tree, `folder-${Math.floor(index / 10)}`)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, `file-${index}`), 'text')
  }
  symlinkSync(join(top, 'outside'), join(tree, 'link'))
  return tree
}

describe.each([
  ['a few files', 12],
  ['many files', 400],
])('a folder of %s that is removed', (_, files) => {
  test('is out of the way at once and gone in the end, and what its links name stays', async () => {
    const tree = grow(files)
    const removal = removeTree(tree)
    expect(existsSync(tree)).toBe(false)
    await removal
    expect(readdirSync(top)).toEqual(['outside'])
    expect(readFileSync(join(top, 'outside', 'kept'), 'utf8')).toBe('still here')
  })

  test('may hold names that are no UTF-8, also of folders', async () => {
    const tree = grow(files)
    const odd = Buffer.concat([Buffer.from(`${tree}/`), Buffer.from([0xff, 0xfe])])
    mkdirSync(odd)
    writeFileSync(Buffer.concat([odd, Buffer.from('/inside')]), 'text')
    await removeTree(tree)
    expect(readdirSync(top)).toEqual(['outside'])
  })
})

test('what is no folder, or is not there, is removed like all else', async () => {
  writeFileSync(join(top, 'file'), 'text')
  await removeTree(join(top, 'file'))
  await removeTree(join(top, 'nothing'))
  expect(readdirSync(top)).toEqual([])
})
