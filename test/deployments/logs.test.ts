import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { systemClock } from '#server/kernel/clock'
import { roundsDuring } from '#test/support/rounds'
import { createDeploymentLogs } from '#server/deployments/logs'
import { createTestApi } from '#test/support/api'

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
  let all: { seq: number }[] = []
  const rounds = await roundsDuring(async () => void (all = await logs.read('dep_x')))
  expect([ends(all), rounds >= 4]).toEqual([[4500, 1, 4500], true])
  expect(ends(await logs.read('dep_x', { tail: 1500 }))).toEqual([1500, 3001, 4500])
  expect(ends(await logs.read('dep_x', { after: 3999 }))).toEqual([501, 4000, 4500])
  expect(ends(await logs.read('dep_x', { after: 10, tail: 2000 }))).toEqual([2000, 11, 2010])
  expect(await logs.read('dep_none')).toEqual([])
})

it('of the logs of an app the newest stay, within so many bytes; what is written now stays whatever it takes', () => {
  const logs = createDeploymentLogs(directory, systemClock)
  const ids = ['dep_5', 'dep_4', 'dep_3', 'dep_2', 'dep_1']
  for (const id of ids) {
    logs.append(id, 'build', 'stdout', '文'.repeat(1000))
    if (id !== 'dep_1') logs.close(id)
  }
  logs.flush()
  logs.keepNewest(ids, 7000)
  expect(ids.filter((id) => logs.latest(id) > 0)).toEqual(['dep_5', 'dep_4', 'dep_1'])
  logs.close('dep_1')
  logs.keepNewest(ids, 1)
  expect(ids.filter((id) => logs.latest(id) > 0)).toEqual(['dep_5'])
})

it('a log ends at its bytes, also where a character has several', () => {
  const logs = createDeploymentLogs(directory, systemClock)
  for (let line = 0; line < 1200; line += 1) logs.append('dep_x', 'build', 'stdout', '文'.repeat(4000))
  logs.flush()
  expect(statSync(join(directory, 'dep_x.ndjson')).size).toBeLessThan(9 * 1024 ** 2)
})

it('a log that has ended is not opened by what is asked about its deployment afterwards', async () => {
  const logs = createDeploymentLogs(directory, systemClock, () => ['a long secret'])
  logs.append('dep_x', 'build', 'stdout', 'line')
  logs.close('dep_x')
  expect(logs.redact('dep_x', 'with a long secret in it')).not.toContain('secret')
  expect(await logs.prune(Date.now() + 60_000)).toBe(1)
})

it('the end of a deployment takes the oldest logs of its app that have no room beside the newest', async () => {
  const api = await createTestApi()
  const asked = { name: 'shop', image: 'nginx:1.29', port: 80, soak_seconds: 0 }
  const app_id = (await api.as('developer').post('/api/apps', asked)).body.data.id
  await api.services.jobs.idle()
  const deploy = async () => {
    const { body } = await api.as('developer').post(`/api/apps/${app_id}/deploy`)
    await api.services.jobs.idle()
    return join(api.kernel.config.data_directory, 'logs', 'deployments', `${body.data.id}.ndjson`)
  }
  const [oldest, older] = [await deploy(), await deploy()]
  truncateSync(older, 128 * 1024 ** 2)
  const newest = await deploy()
  expect([oldest, older, newest].map(existsSync)).toEqual([false, false, true])
  await api.close()
})
