import { afterEach, beforeEach, expect, it } from 'vitest'
import { createLeftArchives } from '#server/backups/left-archives'
import type { BackupRow } from '#server/backups/repository'
import { createTestKernel, type TestKernel } from '#test/support/kernel'

let kernel: TestKernel
beforeEach(() => {
  kernel = createTestKernel()
})
afterEach(() => kernel.dispose())

it('what is left at a destination that does not answer is asked for once in a pass, and others go all the same', async () => {
  const rows = ['away', 'away', 'there'].map((destination_id, n) => ({ id: `bkp_${n}`, destination_id }))
  const left = new Set(rows.map(({ id }) => id))
  const asked: string[] = []
  let is_away = true
  const { pass } = createLeftArchives({
    log: kernel.log,
    repository: {
      left: () => rows.filter(({ id }) => left.has(id)) as BackupRow[],
      setLeft: (id, is_left) => void (is_left ? left.add(id) : left.delete(id)) as never,
    },
    archives: {
      async remove({ id, destination_id }) {
        asked.push(id)
        if (destination_id === 'away' && is_away) throw new Error('It does not answer.')
      },
    },
  })
  await pass()
  expect([asked, [...left]]).toEqual([
    ['bkp_0', 'bkp_2'],
    ['bkp_0', 'bkp_1'],
  ])
  is_away = false
  await pass()
  expect([...left]).toEqual([])
})
