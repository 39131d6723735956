import * as v from 'valibot'
import { payloadSchema } from '#server/kernel/event-payloads'
import { EVENT_TYPES } from '#server/kernel/event-types'
import type { PlatformEvent } from '#server/kernel/events'

/** What is not as the documents say of events, in sentences: types that are not listed, payloads that differ. */
export function faultsOfEvents(events: readonly PlatformEvent[]): string[] {
  const schemas = new Map<string, v.GenericSchema>()
  const faults = events.flatMap(({ type, payload }) => {
    if (!Object.hasOwn(EVENT_TYPES, type)) return [`${type} is not listed.`]
    if (!schemas.has(type)) schemas.set(type, payloadSchema(type))
    const parsed = v.safeParse(schemas.get(type)!, payload)
    return (parsed.issues ?? []).map(
      (issue) => `${type}, ${v.getDotPath(issue) ?? 'itself'}: ${issue.message}`,
    )
  })
  return [...new Set(faults)]
}
