import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import { createTerminalSession } from '#server/terminals/session'

it('asks the engine for one size at a time however many come, and for the newest in the end', async () => {
  const outlet = { send: () => true, due() {}, finish() {} }
  const session = createTerminalSession({ monotonic_ms: () => 0 }, { cols: 80, rows: 24 }, outlet, () => {})
  const asked: string[] = []
  const answers: (() => void)[] = []
  session.receive({ type: 'resize', cols: 81, rows: 24 })
  session.begin({
    stream: new PassThrough(),
    done: new Promise(() => {}),
    resize({ cols, rows }) {
      asked.push(`${cols}x${rows}`)
      return new Promise((resolve) => answers.push(resolve))
    },
  })
  for (let cols = 100; cols < 1000; cols += 1) session.receive({ type: 'resize', cols, rows: 30 })
  expect(asked).toEqual(['81x24'])
  answers.shift()!()
  await new Promise(setImmediate)
  expect(asked).toEqual(['81x24', '999x30'])
  answers.shift()!()
  await new Promise(setImmediate)
  session.receive({ type: 'resize', cols: 999, rows: 30 })
  expect(asked).toHaveLength(2)
})
