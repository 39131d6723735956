import { createServer, type AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { createSmtpMail } from '#server/platform/mail/smtp'
import { createGuardedClient } from '#server/platform/outbound/client'
import { createDial } from '#server/platform/outbound/dial'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import { createForgeCalls } from '#server/webhooks/forge-calls'
import type { DeliveryRow } from '#server/webhooks/deliveries'
import { createSender } from '#server/webhooks/sender'

it('a receiver is known to hang by all requests of one delivery together', async () => {
  let now_ms = Date.parse('2026-01-01T00:00:00.000Z')
  const clock = {
    now: () => now_ms,
    iso: () => new Date(now_ms).toISOString(),
    monotonic_ms: () => now_ms,
  }
  const row = { id: 'dlv_1', webhook_id: 'whk_1', attempts: 0, status: 'pending' } as DeliveryRow
  const rows = [row]
  const updated: DeliveryRow[] = []
  const put_off: unknown[] = []
  const sender = createSender({
    clock,
    payerOf: () => 'prj_1',
    deliveries: {
      due: () => rows.splice(0),
      nextDue: () => null,
      mendAhead: () => undefined,
      update: (next: DeliveryRow) => updated.push(next),
      putOff: (id: string, _at: string, until: string) =>
        put_off.push([id, (Date.parse(until) - now_ms) / 1000]),
    },
    // Eleven requests of four seconds each, of which the last one is told.
    requestOf: () => ({
      attempt: async () => {
        now_ms += 44_000
        return {
          succeeded: false,
          response_status: 500,
          duration_ms: 4_000,
          detail: 'The forge answered 500.',
          is_gone: false,
        }
      },
    }),
    ended: () => undefined,
  } as unknown as Parameters<typeof createSender>[0])
  sender.start()
  await sender.idle()
  await sender.stop()
  expect(put_off).toEqual([['whk_1', 10]])
  expect(updated.map(({ duration_ms }) => duration_ms)).toEqual([44_000])
})

it('a stop waits for no receiver that hangs, and what it cut off is due at the next start', async () => {
  const reached = new Set<string>()
  const all = Promise.withResolvers<void>()
  const listen = async (greeting: string) => {
    const server = createServer((socket) => {
      socket.on('error', () => {}).write(greeting)
      socket.once('data', (bytes) => {
        reached.add(String(bytes).split(' ')[0]!)
        if (reached.size === 3) all.resolve()
      })
    })
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    return { port: (server.address() as AddressInfo).port, close: () => server.close() }
  }
  const [web, post] = [await listen(''), await listen('220 test ESMTP\r\n')]
  const policy = createOutboundPolicy({ allowed_private_hosts: ['127.0.0.1'] })
  const client = createGuardedClient(policy)
  const clock = { now: Date.now, iso: () => new Date().toISOString(), monotonic_ms: () => performance.now() }
  const request = { url: `http://127.0.0.1:${web.port}/`, headers: {}, body: 'x' } as const
  const call = createForgeCalls({ client, clock })
  const requests: Record<string, unknown> = {
    hook: { ...request, method: 'POST' },
    mail: { mail: { to: 'ada@example.com', subject: 'x', text: 'x' } },
    forge: {
      attempt: async (signal: AbortSignal) => (await call({ ...request, method: 'PUT' }, signal)).attempt,
    },
  }
  const rows = Object.keys(requests).map((id) => ({ id, webhook_id: id, attempts: 0 }) as DeliveryRow)
  const updated: DeliveryRow[] = []
  const sender = createSender({
    clock,
    client,
    payerOf: (id: string) => id,
    mail: () =>
      createSmtpMail({
        isConfigured: () => true,
        settings: () => ({
          ...{ host: '127.0.0.1', port: post.port, security: 'none', from: 'portreeve@example.com' },
        }),
        dial: createDial(policy),
      }),
    deliveries: {
      due: () => rows.splice(0),
      nextDue: () => null,
      mendAhead: () => undefined,
      update: (next: DeliveryRow) => updated.push(next),
      putOff: () => undefined,
    },
    requestOf: ({ id }: DeliveryRow) => requests[id],
    ended: () => undefined,
    stop_ms: 0,
  } as unknown as Parameters<typeof createSender>[0])
  sender.start()
  await all.promise
  await sender.stop()
  expect([...reached].sort()).toEqual(['EHLO', 'POST', 'PUT'])
  expect(updated).toEqual([])
  await client.close()
  for (const { close } of [web, post]) close()
})

it('receivers that hung, of however many projects, leave places to those that answer', async () => {
  let now_ms = Date.parse('2026-01-01T00:00:00.000Z')
  const clock = {
    now: () => now_ms,
    iso: () => new Date(now_ms).toISOString(),
    monotonic_ms: () => now_ms,
  }
  const payerOf = (webhook_id: string) => webhook_id.split(' ')[0]!
  const rows: DeliveryRow[] = []
  const queue = (id: string) =>
    rows.push({ id, webhook_id: `${id} hook`, attempts: 0, status: 'pending' } as DeliveryRow)
  /** What is under way, with what ends it. */
  const open = new Map<string, () => void>()
  const sender = createSender({
    clock,
    payerOf,
    deliveries: {
      due: (_at: string, { projects }: { projects: string[] }, limit: number) =>
        rows.filter(({ webhook_id }) => !projects.includes(payerOf(webhook_id))).slice(0, limit),
      nextDue: () => null,
      mendAhead: () => undefined,
      update: ({ id }: DeliveryRow) =>
        rows.splice(
          rows.findIndex((row) => row.id === id),
          1,
        ),
      putOff: () => undefined,
      putOffProject: () => undefined,
    },
    requestOf: ({ id }: DeliveryRow) => ({
      attempt: () =>
        new Promise((resolve) =>
          open.set(id, () => {
            open.delete(id)
            resolve({ succeeded: false, response_status: null, duration_ms: 0, detail: 'x', is_gone: false })
          }),
        ),
    }),
    ended: () => undefined,
  } as unknown as Parameters<typeof createSender>[0])
  const eve = Array.from({ length: 32 }, (_, at) => `eve${at}`)
  for (const id of eve) queue(id)
  sender.start()
  // Each of them hangs once.
  for (let ended = 0; ended < eve.length; ) {
    now_ms += 10_000
    for (const end of [...open.values()]) {
      end()
      ended += 1
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
  for (const id of eve) queue(id)
  sender.wake()
  queue('ada')
  sender.wake()
  expect(open.has('ada')).toBe(true)
  for (; open.size > 0; await new Promise((resolve) => setImmediate(resolve)))
    for (const end of [...open.values()]) end()
  await sender.stop()
})
