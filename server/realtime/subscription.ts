import { inMilliseconds } from '#server/kernel/clock'
import type { PlatformEvent } from '#server/kernel/events'
import type { Channel } from './channels.ts'
import { createFeed, type Entry, type Source } from './feed.ts'
import type { Outgoing, RealtimePorts } from './ports.ts'

export interface Subscription {
  readonly channel: Channel
  /** Sends what is due; called once after the start, and while the connection was full. */
  pump(): void
  stop(): void
}
/** Sends a message of the channel; false when the connection is full. */
export type Send = (message: Omit<Outgoing, 'channel'>) => boolean

/** Lines of an app's log that are looked through for what came after a cursor. */
const RESUME_LINES = 5000

/** Whether a text can be a cursor of this channel. */
export function isCursor(channel: Channel, text: string): boolean {
  if (channel.kind === 'runtime_log') return /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text)
  return (channel.kind === 'deployment' ? /^\d{1,15}(\.\d{1,15})?$/ : /^\d{1,15}$/).test(text)
}

/** Where a client wants to go on; undefined: only what is new. */
function positionsOf(after: string | undefined): [events: number | undefined, lines: number | undefined] {
  const [, events, lines] = /^(\d{1,15})(?:\.(\d{1,15}))?$/.exec(after ?? '') ?? []
  return [
    events === undefined ? undefined : Number(events),
    events === undefined ? undefined : Number(lines ?? 0),
  ]
}

function matches(
  event: PlatformEvent,
  filter: { app_id?: string; deployment_id?: string; project_id?: string },
): boolean {
  return (['app_id', 'deployment_id', 'project_id'] as const).every(
    (key) => filter[key] === undefined || event[key] === filter[key],
  )
}
const entryOf = (event: PlatformEvent): Entry => {
  const { seq, type, ...data } = event
  return { position: seq, type, data }
}

function eventSource(
  ports: RealtimePorts,
  channel: Exclude<Channel, { kind: 'runtime_log' | 'access_log' }>,
): Source {
  return {
    page_size: 200,
    after: (position, limit) => ports.events.after(position, channel.filter, limit).map(entryOf),
    subscribe: (listener) =>
      ports.events.subscribe((event) => {
        if (matches(event, channel.filter)) listener(entryOf(event))
      }),
  }
}

function lineSource(ports: RealtimePorts, deployment_id: string): Source {
  return {
    page_size: 5000,
    after: (position, limit) =>
      ports.deploymentLogs
        .after(deployment_id, position, limit)
        .map((line) => ({ position: line.seq, type: 'log', data: line })),
    subscribe: (listener) =>
      ports.deploymentLogs.subscribe(deployment_id, (line) =>
        listener({ position: line.seq, type: 'log', data: line }),
      ),
  }
}

function accessSource(ports: RealtimePorts, app_id: string): Source {
  return {
    page_size: 1000,
    after: (position, limit) =>
      ports.accessLogs
        .after(app_id, position, limit)
        .map((line) => ({ position: line.seq, type: 'log', data: line })),
    subscribe: (listener) =>
      ports.accessLogs.subscribe(app_id, (line) => listener({ position: line.seq, type: 'log', data: line })),
  }
}

/** Subscribes to a channel from a cursor; tells `subscribed` first. */
export function createSubscription(
  ports: RealtimePorts,
  channel: Channel,
  after: string | undefined,
  send: Send,
): Subscription {
  if (channel.kind === 'runtime_log') return followRuntimeLog(ports, channel, after, send)
  if (channel.kind === 'access_log')
    return followOne(
      channel,
      accessSource(ports, channel.id),
      after === undefined ? ports.accessLogs.latest(channel.id) : Number(after),
      send,
    )
  const [event_position, line_position] = positionsOf(after)
  const events_from = event_position ?? ports.events.latest()
  if (channel.kind !== 'deployment') return followOne(channel, eventSource(ports, channel), events_from, send)
  const lines_from = line_position ?? ports.deploymentLogs.tail(channel.id, 1)[0]?.seq ?? 0
  const at = { events: events_from, lines: lines_from }
  const cursor = () => `${at.events}.${at.lines}`
  const deliver = (part: keyof typeof at) => (entry: Entry, position: number) => {
    const before = at[part]
    at[part] = position
    const sent = send({ type: entry.type, cursor: cursor(), data: entry.data })
    if (!sent) at[part] = before
    return sent
  }
  const feeds = [
    createFeed(eventSource(ports, channel), events_from, deliver('events')),
    createFeed(lineSource(ports, channel.id), lines_from, deliver('lines')),
  ]
  send({ type: 'subscribed', cursor: cursor(), data: {} })
  return {
    channel,
    pump: () => feeds.forEach((feed) => feed.pump()),
    stop: () => feeds.forEach((feed) => feed.stop()),
  }
}

function followOne(channel: Channel, source: Source, from: number, send: Send): Subscription {
  const feed = createFeed(source, from, (entry, position) =>
    send({ type: entry.type, cursor: String(position), data: entry.data }),
  )
  send({ type: 'subscribed', cursor: String(from), data: {} })
  return { channel, pump: feed.pump, stop: feed.stop }
}

/**
 * What instances print is kept by the engine, not by us: when the connection is full, lines are dropped and a
 * `gap` says how many.
 */
function followRuntimeLog(
  ports: RealtimePorts,
  channel: Extract<Channel, { kind: 'runtime_log' }>,
  after: string | undefined,
  send: Send,
): Subscription {
  const stop = new AbortController()
  let cursor = after ?? null
  let dropped = 0
  const tell = (): boolean => {
    if (dropped > 0 && send({ type: 'gap', cursor, data: { dropped } })) dropped = 0
    return dropped === 0
  }
  send({ type: 'subscribed', cursor, data: {} })
  ports.runtimeLogs
    .follow(channel.id, after === undefined ? 0 : RESUME_LINES, stop.signal, (instance_id, line) => {
      if (stop.signal.aborted || (after !== undefined && line.at <= after)) return
      if (
        tell() &&
        send({
          type: 'log',
          cursor: line.at,
          data: { instance_id, ...line, at: inMilliseconds(line.at) },
        })
      )
        cursor = line.at
      else dropped += 1
    })
    .catch((error: unknown) => {
      if (stop.signal.aborted) return
      ports.log.debug('Following a log ended', { app: channel.id, error })
      send({
        type: 'gap',
        cursor,
        data: { dropped: null, reason: 'The container engine does not answer; subscribe again.' },
      })
    })
  return { channel, pump: () => void tell(), stop: () => stop.abort() }
}
