import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, it } from 'vitest'
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
