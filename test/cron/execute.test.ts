import { createServer, type AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { execute, type ExecutionPorts } from '#server/cron/execute'
import type { CronJobRow } from '#server/cron/repository'
import { createTail } from '#server/cron/tail'
import type { Secrets } from '#server/kernel/secrets'
import { createGuardedClient } from '#server/platform/outbound/client'
import { createOutboundPolicy } from '#server/platform/outbound/policy'

it('a call whose answer does not come leaves its place to the runs of others, and goes on', async () => {
  const answer = Promise.withResolvers<void>()
  const server = createServer((socket) => {
    const asked = new Promise((resolve) => socket.on('error', () => {}).once('data', resolve))
    void Promise.all([asked, answer.promise]).then(() =>
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate'),
    )
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
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
  answer.resolve()
  expect(await told).toMatchObject({ ok: true, http_status: 200, output: 'late' })
  await client.close()
  await new Promise((closed) => server.close(closed))
})
