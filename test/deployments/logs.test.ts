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
