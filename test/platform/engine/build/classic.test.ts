import { expect, it } from 'vitest'
import { createClassicLog } from '#server/platform/engine/build/classic'

it('a command that prints a megabyte of short lines at once lets others be served in between', async () => {
  let lines = 0
  let passed_ms = 0
  const served: number[] = []
  const log = createClassicLog(
    'prj_1',
    () => (lines += 1),
    () => (passed_ms += 1),
  )
  const reading = log.text('\n'.repeat(1_000_000))
  while (lines < 1_000_000) {
    served.push(lines)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await reading
  expect(Math.max(...served.map((count, at) => count - (served[at - 1] ?? 0)))).toBeLessThan(50_000)
})

it('short writes of a command rest as one long one does', async () => {
  let passed_ms = 0
  let rests = 0
  const log = createClassicLog(
    'prj_1',
    () => {},
    () => (passed_ms += 1),
  )
  let is_writing = true
  const writing = (async () => {
    for (let write = 0; write < 1_000; write += 1) await log.text('y\n')
    is_writing = false
  })()
  while (is_writing) {
    rests += 1
    await new Promise((resolve) => setImmediate(resolve))
  }
  await writing
  expect(rests).toBeGreaterThan(50)
})
