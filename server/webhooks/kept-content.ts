import type { ForgeEvent } from './forges/forge.ts'
import { other } from './forges/forge.ts'

/** Deliveries of one hook whose content is kept; of older ones it is kept that they were. */
export const CONTENTS_KEPT = 200
/** Characters of an event that are kept whole, and of each end of a message of a longer one. */
const MOST_KEPT = 16_384
const MESSAGE_END = 2048

/** What stands in the place of a content that is not kept any more: done again, it does nothing. */
export const FORGOTTEN = JSON.stringify(other('What this delivery told is not kept any more.'))

/**
 * An event as it is kept, from which it can be done again. Whoever pushes decides how long it is: of a long one go
 * its files, so that it is taken to touch what is watched, and the middle of its message.
 */
export function keptContent(event: ForgeEvent): string {
  const whole = JSON.stringify(event)
  if (whole.length <= MOST_KEPT || event.kind !== 'push') return whole
  const { message } = event
  const ends = `${message.slice(0, MESSAGE_END)}\n…\n${message.slice(-MESSAGE_END)}`
  return JSON.stringify({
    ...event,
    message: message.length > 2 * MESSAGE_END ? ends : message,
    changed: undefined,
  })
}
