import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestApi, type TestApi } from '#test/support/api'

/** Fills a store once and ends, as many public files have it; nothing waits for it. */
const fileWith = (restart: string) => `
services:
  web: { image: "shop:1", ports: ["80:8080"] }
  buckets: { image: "buckets:1", command: ["make-buckets"], depends_on: [web]${restart} }
`
let api: TestApi
beforeEach(async () => {
  api = await createTestApi()
  api.fakes.engine.behave(({ reference }) => reference.includes('shop'), { exposed_ports: [8080] })
})
afterEach(() => api.close())

async function deployed(compose: string) {
  const call = api.as('developer')
  const { body } = await call.post('/api/apps', { name: 'store', compose, soak_seconds: 0 })
  await api.services.jobs.idle()
  const { body: list } = await call.get(`/api/apps/${body.data.id}/deployments`)
  return (await call.get(`/api/deployments/${list.data[0].id}`)).body.data
}
const ran: string[][] = []
const buckets = (exit_code: number) =>
  api.fakes.engine.behave(({ reference }) => reference.includes('buckets'), {
    start: 'exits',
    exit_code,
    run({ command }) {
      ran.push(command ?? [])
      return { exit_code }
    },
  })

test('a service that the file does not start again runs once to its end, and the others serve', async () => {
  buckets(0)
  ran.length = 0
  const { status, error } = await deployed(fileWith(', restart: "no"'))
  expect([status, error]).toEqual(['live', null])
  expect(ran).toEqual([['make-buckets']])
})
test('one that does not succeed fails the deployment, with its name', async () => {
  buckets(3)
  const { status, error } = await deployed(fileWith(', restart: "no"'))
  expect(status).toBe('failed')
  expect(error.message).toBe('The service buckets, which runs to its end, exited with code 3.')
})
test('a service that ends where nothing says that it may fails with what to write into the file', async () => {
  buckets(0)
  const { status, error } = await deployed(fileWith(''))
  expect(status).toBe('failed')
  expect(error.message).toMatch(/^The service buckets exited with code 0 .*: it ends by itself\.$/)
  expect(error.hint).toContain('`restart: "no"`')
  expect(error.hint).not.toContain('processes.')
})
