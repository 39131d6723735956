import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'
import { pretendLog, type PretendedLog } from './pretend-log.ts'

const ON = { point_in_time: { enabled: true } }
const OFF = { point_in_time: { enabled: false } }

let api: TestApi
let log: PretendedLog
beforeEach(async () => {
  api = await createTestApi()
  log = pretendLog(api)
})
afterEach(async () => {
  vi.restoreAllMocks()
  await api.close()
})

const archiving = () => api.services.backups.point_in_time
const pass = () => archiving().run()
const create = async (name: string, more: object) => {
  const { status, body } = await api
    .as('developer')
    .post('/api/databases', { name, engine: 'postgres', ...more })
  expect(status, JSON.stringify(body)).toBe(201)
  return body.data.id as string
}
const settle = async () => {
  await api.services.jobs.idle()
  await pass()
  await api.services.jobs.idle()
}
const make = async (name: string, more: object) => {
  const id = await create(name, more)
  await settle()
  return id
}
const change = async (id: string, body: object) => {
  const answer = await api.as('developer').put(`/api/databases/${id}`, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
}
const archives = () =>
  api.kernel.db.sql('SELECT id, status FROM log_archives ORDER BY rowid').all() as {
    id: string
    status: string
  }[]

describe('turning it on and off', () => {
  it('begins nothing before the server was started anew with its log kept', async () => {
    const id = await make('orders', {})
    await api.services.jobs.stop()
    await change(id, ON)
    await pass()
    expect([archives(), log.pieces]).toEqual([[], 1])
    api.services.jobs.start()
    await settle()
    expect([archives(), log.pieces > 1]).toEqual([[{ id: expect.any(String), status: 'active' }], true])
  })
  it('does not go on with an archive that misses what was committed in between', async () => {
    const id = await make('orders', ON)
    await change(id, OFF)
    await api.services.jobs.idle()
    await change(id, ON)
    await settle()
    expect(archives().map(({ status }) => status)).toEqual(['closed', 'active'])
  })
})
