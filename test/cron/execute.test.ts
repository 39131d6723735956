import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createPlainServer } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { execute, type ExecutionPorts } from '#server/cron/execute'
import type { CronJobRow } from '#server/cron/repository'
import { createTail } from '#server/cron/tail'
import type { Secrets } from '#server/kernel/secrets'
import { createGuardedClient } from '#server/platform/outbound/client'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import { createTestApi, type TestApi } from '#test/support/api'
import { SHOP_URL } from '#test/support/shop'

let api: TestApi
let server: Server
/** What the called server makes of a request. */
let answer: (body: string, headers: Record<string, unknown>) => string
beforeEach(async () => {
  api = await createTestApi({ environment: { PORTREEVE_ALLOWED_PRIVATE_HOSTS: '127.0.0.1' } })
  server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => response.end(answer(Buffer.concat(chunks).toString(), request.headers)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterEach(async () => {
  server.closeAllConnections()
  server.close()
  await api.close()
})

/** What a viewer finds of a call that a developer had made. */
async function seenOf(http: { headers?: Record<string, string>; body?: string }): Promise<string> {
  api.fakes.git.commit(SHOP_URL, 'main', { 'index.html': '<p>hello' })
  const app = await api
    .as('developer')
    .post('/api/apps', { name: 'shop', git_url: SHOP_URL, soak_seconds: 0 })
  await api.services.jobs.idle()
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/tasks`
  const made = await api
    .as('developer')
    .post('/api/cron-jobs', { app_id: app.body.data.id, expression: '0 * * * *', http: { url, ...http } })
  expect(made.status, made.text).toBe(201)
  expect((await api.as('developer').post(`/api/cron-jobs/${made.body.data.id}/run`)).status).toBe(201)
  await api.services.jobs.idle()
  const [run] = (await api.as('viewer').get(`/api/cron-jobs/${made.body.data.id}/runs`)).body.data
  expect(run.status).toBe('succeeded')
  return run.output as string
}

const TOKEN = 'tok-7f3a9c1e5b'
const PASSWORD = 'pass/word+of "é"'

it.each([
  ['the token of a header', () => `refused: ${TOKEN}`],
  ['a header in JSON', (_body: string, headers: object) => JSON.stringify(headers)],
  ['a header in base64', () => Buffer.from(`Bearer ${TOKEN}`).toString('base64')],
])('an answer that repeats %s does not show it to a viewer', async (_what, made) => {
  answer = made
  const seen = await seenOf({ headers: { Authorization: `Bearer ${TOKEN}` } })
  expect(seen).toContain('[redacted]')
  for (const text of [seen, Buffer.from(seen.trim(), 'base64').toString()]) expect(text).not.toContain(TOKEN)
})

it('nor the password of basic authentication', async () => {
  answer = () => `robot logged in with ${PASSWORD}`
  const Authorization = `Basic ${Buffer.from(`robot:${PASSWORD}`).toString('base64')}`
  expect(await seenOf({ headers: { Authorization } })).toBe('robot logged in with [redacted]')
})

it('nor the body that was sent, or what in it is a secret by its name', async () => {
  answer = (body) => `got ${body}; ${TOKEN} is not known, the nightly report is`
  const seen = await seenOf({ body: JSON.stringify({ task: 'nightly', api_key: TOKEN }) })
  expect(seen).toBe('got [redacted]; [redacted] is not known, the nightly report is')
})

it('nor the beginning of one where what is kept of the answer ends', async () => {
  answer = () => `${'x'.repeat(4096 - TOKEN.length + 2)}${TOKEN}${'y'.repeat(1000)}`
  const seen = await seenOf({ headers: { Authorization: `Bearer ${TOKEN}` } })
  expect(seen).not.toContain(TOKEN.slice(0, 4))
})

it('a call whose answer does not come leaves its place to the runs of others, and goes on', async () => {
  const answered = Promise.withResolvers<void>()
  const silent = createPlainServer((socket) => {
    const asked = new Promise((resolve) => socket.on('error', () => {}).once('data', resolve))
    void Promise.all([asked, answered.promise]).then(() =>
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate'),
    )
  })
  await new Promise<void>((listening) => silent.listen(0, '127.0.0.1', listening))
  const { port } = silent.address() as AddressInfo
  const client = createGuardedClient(createOutboundPolicy({ allowed_private_hosts: ['127.0.0.1'] }))
  const ports = { client, redact: async (_app: string, text: string) => text } as unknown as ExecutionPorts
  const job = { app_id: 'app_1', command: null, request: null, method: 'GET', timeout_s: 86_400 }
  const left = Promise.withResolvers<void>()
  const told = execute(
    ports,
    {} as Secrets,
    { ...job, url: `http://127.0.0.1:${port}/` } as CronJobRow,
    { purpose: 'x', tail: createTail(100), leavePlace: left.resolve, call_holds_ms: 1 },
    new AbortController().signal,
  )
  await left.promise
  answered.resolve()
  expect(await told).toMatchObject({ ok: true, http_status: 200, output: 'late' })
  await client.close()
  await new Promise((closed) => silent.close(closed))
})
