import type { Clock } from '#server/kernel/clock'
import { createTimeHeld } from '#server/kernel/time-held'
import type { DeliveryRepository } from './deliveries.ts'

/** Messages under way at once; a receiver that hangs holds one of them for ten seconds. */
export const MOST_AT_ONCE = 16
/** Of one webhook, so that a receiver that hangs leaves room for all others. */
const MOST_OF_ONE = 2
/** Of all webhooks of one project, and of one whose receivers hang. */
const MOST_OF_PROJECT = 6
const MOST_OF_SLOW = 2
/** An attempt that took so long and failed hung. */
const HUNG_MS = 5_000
/** A project that held places for so long of late is slow: three receivers and more of it hang. */
const SLOW_MS = 200_000
/** A project that held places for so long of late comes after all others: a receiver of it hung. */
const HEAVY_MS = 5_000
/** Places that are left to projects which held none for long and have none: somebody may have many in which all hang. */
const KEPT_FOR_LIGHT = 4
/** What else is due of a receiver that hangs waits so long, twice that the next time, and so on. */
const REST_S = 10
const LONGEST_REST_S = 300
/** How many webhooks it is known of how their last message went. */
const MOST_KNOWN = 5_000

export interface PlacesOptions {
  clock: Clock
  deliveries: Pick<DeliveryRepository, 'putOff' | 'putOffProject'>
  /** The project whose messages those of a webhook are, or what stands for itself. */
  payerOf(webhook_id: string): string
}

/**
 * Shares what is sent at once. What hangs is put off with all that is due of it: else somebody with many webhooks would
 * have so much that came first that nobody else were told anything.
 */
export function createPlaces({ clock, deliveries, payerOf }: PlacesOptions) {
  const of_hook = new Map<string, number>()
  const of_payer = new Map<string, number>()
  /** How often in a row the receiver hung; 0 for one that did not the last time. */
  const hangs = new Map<string, number>()
  const know = (webhook_id: string, times: number) => {
    hangs.delete(webhook_id)
    hangs.set(webhook_id, times)
    // The one that was sent nothing for the longest time may be long deleted.
    if (hangs.size > MOST_KNOWN) hangs.delete(hangs.keys().next().value!)
  }
  const held = createTimeHeld(clock)
  const add = (counts: Map<string, number>, key: string, by: number) => {
    const count = (counts.get(key) ?? 0) + by
    if (count === 0) counts.delete(key)
    else counts.set(key, count)
  }
  const isSlow = (payer: string) => held.of(payer) > SLOW_MS
  let count = 0
  const isHeavy = (payer: string) => of_payer.has(payer) || held.of(payer) > HEAVY_MS
  const isHookFull = (webhook_id: string) => (of_hook.get(webhook_id) ?? 0) >= MOST_OF_ONE
  const isPayerFull = (payer: string) =>
    (of_payer.get(payer) ?? 0) >= (isSlow(payer) ? MOST_OF_SLOW : MOST_OF_PROJECT)
  const untilIn = (rest_s: number) => new Date(clock.now() + rest_s * 1000).toISOString()

  function rest(webhook_id: string, payer: string): void {
    const count = (hangs.get(webhook_id) ?? 0) + 1
    know(webhook_id, count)
    const rest_s = Math.min(REST_S * 2 ** (count - 1), LONGEST_REST_S)
    deliveries.putOff(webhook_id, clock.iso(), untilIn(rest_s))
    if (!isSlow(payer)) return
    // Those that answered the last time go on.
    const well = [...hangs].flatMap(([id, times]) => (times === 0 ? [id] : []))
    deliveries.putOffProject(payer, well, clock.iso(), untilIn(LONGEST_REST_S))
  }

  return {
    isFull: (webhook_id: string): boolean => isHookFull(webhook_id) || isPayerFull(payerOf(webhook_id)),
    /** Those of which nothing more may begin: what is due of them would hide all else behind it. */
    full: () => ({
      webhooks: [...of_hook.keys()].filter(isHookFull),
      projects: [...of_payer.keys()].filter(isPayerFull),
    }),
    isHeavy: (webhook_id: string): boolean => isHeavy(payerOf(webhook_id)),
    /** Projects of which nothing begins while there is something of others, nor in the last places. */
    heavy: (): string[] => [...of_payer.keys(), ...held.over(HEAVY_MS)],
    hasRoom: (is_heavy: boolean): boolean => count < MOST_AT_ONCE - (is_heavy ? KEPT_FOR_LIGHT : 0),
    /** Takes a place. Call the answer once the attempt has ended, with how it did. */
    enter(webhook_id: string): (attempt?: { succeeded: boolean; duration_ms: number }) => void {
      const payer = payerOf(webhook_id)
      add(of_hook, webhook_id, 1)
      add(of_payer, payer, 1)
      count += 1
      return (attempt) => {
        add(of_hook, webhook_id, -1)
        add(of_payer, payer, -1)
        count -= 1
        if (!attempt) return
        held.add(payer, attempt.duration_ms)
        held.prune()
        if (attempt.succeeded || attempt.duration_ms < HUNG_MS) know(webhook_id, 0)
        else rest(webhook_id, payer)
      }
    },
  }
}
