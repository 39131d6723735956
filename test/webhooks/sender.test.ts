import { expect, it } from 'vitest'
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
