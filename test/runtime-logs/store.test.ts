import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createRuntimeStore } from '#server/runtime-logs/store'
import { poll } from '#test/support/poll'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'store-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

it('lines that the disk does not take are written once it does, also where it cannot be looked at for a while', async () => {
  const store = createRuntimeStore(folder, () => 1024 * 1024)
  const place = join(folder, 'app_1')
  const print = (text: string) =>
    store.append('app_1', {
      ...{ at: '2026-01-01T00:00:00.000Z', stream: 'stdout', level: 'info', text },
      ...{ instance_id: 'ins_1', process: 'web', index: 1, release_id: 'rel_1', deployment_id: null },
    })
  print('first')
  // A file in the place of the folder: neither written to nor listed.
  writeFileSync(place, '')
  await new Promise((resolve) => setTimeout(resolve, 700))
  rmSync(place)
  print('second')
  await poll(() => store.segments.page('app_1', 0, 10).length === 2)
})

it('of a long log is known how far each instance was read that printed among its last lines, and no other', async () => {
  const store = createRuntimeStore(folder, () => 1024 * 1024)
  const at = (n: number) => new Date(Date.UTC(2026, 0, 1) + n).toISOString()
  const print = (instance_id: string, n: number) =>
    store.append('app_1', {
      ...{ at: at(n), stream: 'stdout', level: 'info', text: `line ${n}` },
      ...{ instance_id, process: 'web', index: 1, release_id: 'rel_1', deployment_id: null },
    })
  print('ins_gone', 0)
  for (let n = 1; n <= 2_500; n += 1) print('ins_1', n)
  print('ins_1', 2_500)
  const marks = await store.readUpTo('app_1')
  expect([...marks]).toEqual([['ins_1', { at: at(2_500), count: 2 }]])
})
