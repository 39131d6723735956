import type { Connection } from '../connection.ts'
import type { EngineEvent } from '../engine.ts'
import { toEngineError, unavailable } from '../failures.ts'
import { isInstance, type LabelScope, ownerOf, ownLabel } from '../labels.ts'
import { readJsonLines } from '../json-lines.ts'

const KINDS = ['start', 'die', 'oom', 'stop', 'destroy'] as const

interface RawEvent {
  Action?: string
  Actor?: { ID?: string; Attributes?: Record<string, string> }
  timeNano?: number
  time?: number
}

/**
 * Lifecycle events of our containers. A stream that ends without the caller's wish means that the engine went
 * away: it throws, so that the caller looks at everything again before it subscribes anew.
 */
export async function* containerEvents(
  connection: Connection,
  scope: LabelScope,
  signal: AbortSignal,
): AsyncGenerator<EngineEvent> {
  if (signal.aborted) return
  const filters = JSON.stringify({ type: ['container'], event: KINDS, label: scope.filter({}) })
  try {
    const answer = await connection.stream({ path: '/events', query: { filters }, signal })
    try {
      for await (const raw of readJsonLines<RawEvent>(answer)) {
        const event = toEvent(raw)
        if (event) yield event
      }
    } finally {
      answer.destroy()
    }
  } catch (error) {
    if (signal.aborted) return
    throw toEngineError(error)
  }
  if (!signal.aborted) throw unavailable(new Error('the event stream ended'))
}

function toEvent(raw: RawEvent): EngineEvent | undefined {
  const kind = KINDS.find((known) => known === raw.Action)
  const id = raw.Actor?.ID
  if (!kind || !id) return undefined
  const attributes = raw.Actor?.Attributes
  const owner = ownerOf(attributes)
  const release_id = ownLabel(attributes, 'release')
  // One-off commands carry no index: they belong to a release, but are no instance of it.
  const one_off = release_id !== undefined && !isInstance(attributes)
  const exit_code =
    kind === 'die' && attributes?.exitCode !== undefined ? Number(attributes.exitCode) : undefined
  const time_ms = raw.timeNano ? raw.timeNano / 1e6 : (raw.time ?? 0) * 1000
  return {
    kind,
    instance_id: id,
    at: new Date(time_ms).toISOString(),
    ...(owner ? { owner } : {}),
    ...(release_id ? { release_id } : {}),
    ...(one_off ? { one_off } : {}),
    ...(exit_code === undefined ? {} : { exit_code }),
  }
}
