import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { systemClock } from '#server/kernel/clock'
import { createDeploymentLogs } from '#server/deployments/logs'

const directory = join(mkdtempSync(join(tmpdir(), 'ptr-logs-')), 'logs')
afterEach(() => rmSync(directory, { recursive: true, force: true }))

it('a log that cannot be written now does not break the server, and nothing of it is lost once it can', () => {
  const logs = createDeploymentLogs(directory, systemClock)
  logs.append('dep_x', 'build', 'stdout', 'first')
  rmSync(directory, { recursive: true })
  expect(() => logs.flush()).not.toThrow()
  mkdirSync(directory)
  logs.append('dep_x', 'build', 'stdout', 'second')
  logs.flush()
  expect(logs.tail('dep_x', 10).map(({ text }) => text)).toEqual(['first', 'second'])
})

it('thousands of lines are read in parts between which others are served: all of them, the newest, those after one', async () => {
  const logs = createDeploymentLogs(directory, systemClock)
  for (let line = 1; line <= 4500; line += 1) logs.append('dep_x', 'build', 'stdout', `line ${line}`)
  const ends = (lines: { seq: number }[]) => [lines.length, lines[0]?.seq, lines.at(-1)?.seq]
  let others = 0
  let reading = true
  const somebodyElse = () => {
    others += 1
    if (reading) setImmediate(somebodyElse)
  }
  setImmediate(somebodyElse)
  const all = await logs.read('dep_x')
  reading = false
  expect([ends(all), others >= 4]).toEqual([[4500, 1, 4500], true])
  expect(ends(await logs.read('dep_x', { tail: 1500 }))).toEqual([1500, 3001, 4500])
  expect(ends(await logs.read('dep_x', { after: 3999 }))).toEqual([501, 4000, 4500])
  expect(ends(await logs.read('dep_x', { after: 10, tail: 2000 }))).toEqual([2000, 11, 2010])
  expect(await logs.read('dep_none')).toEqual([])
})
