import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openTree } from '#server/builds/source-tree'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'portreeve-tree-'))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

it('a source of many folders and links is walked in parts, and comes to the same', async () => {
  for (let n = 0; n < 300; n += 1) {
    mkdirSync(join(root, `d${n}`))
    writeFileSync(join(root, `d${n}`, 'file'), String(n))
    symlinkSync(n % 2 ? 'file' : '/etc/passwd', join(root, `d${n}`, 'link'))
  }
  let turns = 0
  const look = (): void => {
    turns += 1
    next = setImmediate(look)
  }
  let next = setImmediate(look)
  const tree = await openTree(root)
  clearImmediate(next)
  expect(turns).toBeGreaterThanOrEqual(5)
  expect(tree.files()).toHaveLength(450)
  expect([tree.read('d7/file'), tree.read('d7/link'), tree.read('d8/link')]).toEqual(['7', '7', undefined])
})
