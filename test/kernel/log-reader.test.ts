import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { ROOT } from '#test/support/routes'

/** Logs on and on, and ends with 7 once it has written a hundred lines. */
const PROGRAM = `
import { createLog, outliveReaders } from '#server/kernel/log'
outliveReaders()
const log = createLog('text', 'info')
let lines = 0
setInterval(() => {
  log.info('a line')
  log.error('another')
  if ((lines += 1) === 100) process.exit(7)
}, 5)`

test('the server lives on when nobody reads its output any more', async () => {
  const child = spawn(process.execPath, ['--input-type=module-typescript', '--eval', PROGRAM], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  await once(child.stdout, 'data')
  child.stdout.destroy()
  child.stderr.destroy()
  expect(await once(child, 'exit')).toEqual([7, null])
})
