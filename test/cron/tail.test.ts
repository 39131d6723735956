import { expect, it } from 'vitest'
import { createTail } from '#server/cron/tail'

it('the end of an output is kept, to the line, and the rest is told as cut', () => {
  const tail = createTail(10)
  for (const line of ['aaaa', 'bbbb', 'cccc']) tail.add(line)
  expect(tail.end()).toEqual({ output: 'bbbb\ncccc\n', truncated: true })
})
it('a command that prints millions of empty lines costs no more than one that prints few long ones', () => {
  const tail = createTail(65_536)
  const started = process.cpuUsage()
  for (let line = 0; line < 500_000; line += 1) tail.add('')
  expect(process.cpuUsage(started).user).toBeLessThan(2_000_000)
  expect(tail.end()).toEqual({ output: '\n'.repeat(65_536), truncated: true })
})
