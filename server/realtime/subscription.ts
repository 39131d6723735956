import { inMilliseconds } from '#server/kernel/clock'
import type { EventFilter, PlatformEvent } from '#server/kernel/events'
import type { Channel } from './channels.ts'
import { createFeed, type Entry, type Feed, type Source } from './feed.ts'
import type { Outgoing, RealtimePorts, RuntimeLine } from './ports.ts'
import type { Progress, Task } from './turns.ts'

export interface Subscription extends Task {
  readonly channel: Channel
  /** Cursor of what was sent last. */
  cursor(): string | null
  stop(): void
}
/** The connection of a subscription. */
export interface Outlet {
  /** Sends a message of the channel; false when the connection is full or has had enough for now. */
  send(message: Omit<Outgoing, 'channel'>): boolean
  /** There is something to do again: steps are due. */
  due(): void
  /** Whether so many rows may be asked of somebody who sends them in one piece; counts them as used. */
  reserve(rows: number): boolean
}

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

function matches(event: PlatformEvent, filter: EventFilter): boolean {
  if (filter.database_id !== undefined && event.payload.database_id !== filter.database_id) return false
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
    after: (position, limit) => ports.events.after(position, channel.filter, limit).map(entryOf),
    subscribe: (listener) =>
      ports.events.subscribe((event) => {
        if (matches(event, channel.filter)) listener(entryOf(event))
      }),
  }
}

function lineSource(ports: RealtimePorts, deployment_id: string): Source {
  return {
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
  outlet: Outlet,
): Subscription {
  if (channel.kind === 'runtime_log') return followRuntimeLog(ports, channel, after, outlet)
  if (channel.kind === 'access_log')
    return followOne(
      channel,
      accessSource(ports, channel.id),
      after === undefined ? ports.accessLogs.latest(channel.id) : Number(after),
      outlet,
    )
  const [event_position, line_position] = positionsOf(after)
  const events_from = event_position ?? ports.events.latest()
  if (channel.kind !== 'deployment')
    return followOne(channel, eventSource(ports, channel), events_from, outlet)
  const lines_from = line_position ?? ports.deploymentLogs.tail(channel.id, 1)[0]?.seq ?? 0
  const at = { events: events_from, lines: lines_from }
  const cursor = () => `${at.events}.${at.lines}`
  const deliver = (part: keyof typeof at) => (entry: Entry, position: number) => {
    const before = at[part]
    at[part] = position
    const sent = outlet.send({ type: entry.type, cursor: cursor(), data: entry.data })
    if (!sent) at[part] = before
    return sent
  }
  const feeds = [
    createFeed(eventSource(ports, channel), events_from, deliver('events'), outlet.due),
    createFeed(lineSource(ports, channel.id), lines_from, deliver('lines'), outlet.due),
  ]
  return begin(channel, feeds, cursor, outlet)
}

function followOne(channel: Channel, source: Source, from: number, outlet: Outlet): Subscription {
  const deliver = (entry: Entry, position: number) =>
    outlet.send({ type: entry.type, cursor: String(position), data: entry.data })
  const feed = createFeed(source, from, deliver, outlet.due)
  return begin(channel, [feed], () => String(feed.position), outlet)
}

function begin(channel: Channel, feeds: Feed[], cursor: () => string, outlet: Outlet): Subscription {
  outlet.send({ type: 'subscribed', cursor: cursor(), data: {} })
  return {
    channel,
    cursor,
    step() {
      for (const feed of feeds) {
        const progress = feed.step()
        if (progress !== 'done') return progress
      }
      return 'done'
    },
    stop: () => feeds.forEach((feed) => feed.stop()),
  }
}

/**
 * What instances print is kept by the engine, not by us: when the connection is full, lines are dropped and a
 * `gap` says how many.
 */
function followRuntimeLog(
  ports: RealtimePorts,
  channel: Extract<Channel, { kind: 'runtime_log' }>,
  after: string | undefined,
  outlet: Outlet,
): Subscription {
  const stop = new AbortController()
  const tail = after === undefined ? 0 : RESUME_LINES
  let cursor = after ?? null
  let dropped = 0
  let started = false
  const tellGap = (): boolean => {
    if (dropped > 0 && outlet.send({ type: 'gap', cursor, data: { dropped } })) dropped = 0
    return dropped === 0
  }
  const onLine = (instance_id: string, line: RuntimeLine) => {
    if (stop.signal.aborted || (after !== undefined && line.at <= after)) return
    const data = { instance_id, ...line, at: inMilliseconds(line.at) }
    if (tellGap() && outlet.send({ type: 'log', cursor: line.at, data })) {
      cursor = line.at
      return
    }
    dropped += 1
    outlet.due()
  }
  const follow = () => {
    started = true
    ports.runtimeLogs.follow(channel, tail, stop.signal, onLine).catch((error: unknown) => {
      if (stop.signal.aborted) return
      ports.log.debug('Following a log ended', { [channel.noun]: channel.id, error })
      outlet.send({
        type: 'gap',
        cursor,
        data: { dropped: null, reason: 'The container engine does not answer; subscribe again.' },
      })
    })
  }
  outlet.send({ type: 'subscribed', cursor, data: {} })
  return {
    channel,
    cursor: () => cursor,
    step(): Progress {
      if (!started) {
        if (!outlet.reserve(tail)) return 'blocked'
        follow()
      }
      return tellGap() ? 'done' : 'blocked'
    },
    stop: () => stop.abort(),
  }
}
