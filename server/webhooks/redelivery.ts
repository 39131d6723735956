import type { Actor } from '#server/kernel/access'
import type { Clock } from '#server/kernel/clock'
import type { Db } from '#server/kernel/db'
import { conflict, notFound } from '#server/kernel/errors'
import { type DeliveryRepository, deliveryView } from './deliveries.ts'
import type { Inbound } from './inbound.ts'
import type { WebhookRow } from './repository.ts'

export interface RedeliveryParts {
  db: Db
  clock: Clock
  deliveries: DeliveryRepository
  inbound: Pick<Inbound, 'weigh' | 'again'>
  /** A webhook, for somebody who may use it. */
  getFor(actor: Actor, id: string): WebhookRow
  record(actor: Actor, what: string, before: WebhookRow, after: WebhookRow): void
  wakeSoon(): void
}

/** Sends or does again what a delivery was about; one that waits for its next attempt is tried now. */
export function createRedelivery(parts: RedeliveryParts) {
  const { db, clock, deliveries, inbound, record } = parts
  return async (actor: Actor, id: string, delivery_id: string) => {
    const found = () => {
      const hook = parts.getFor(actor, id)
      const row = deliveries.find(delivery_id)
      if (row?.webhook_id !== id) throw notFound('delivery')
      if (row.status === 'pending' && row.next_attempt_at! <= clock.iso())
        throw conflict('This delivery is still being sent.')
      return { hook, row }
    }
    const kept = found()
    const untouched = kept.row.direction === 'in' ? await inbound.weigh(kept.hook, kept.row) : undefined
    return db.tx(() => {
      const { hook, row } = found()
      record(actor, 'redeliver', hook, hook)
      if (untouched) return deliveryView(deliveries.find(inbound.again(hook, row, untouched).delivery_id!)!)
      const attempts = row.status === 'pending' ? row.attempts : 0
      const next = { ...row, status: 'pending' as const, attempts, finished_at: null }
      deliveries.update({ ...next, next_attempt_at: clock.iso() })
      parts.wakeSoon()
      return deliveryView(deliveries.find(delivery_id)!)
    })
  }
}
