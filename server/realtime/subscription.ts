import type { ChannelLog, EventChannel } from '#server/kernel/channels'
import { COLUMN_KEYS, type EventFilter, PAYLOAD_KEYS, type PlatformEvent } from '#server/kernel/events'
import type { OpenChannel } from './channels.ts'
import { createFeed, type Entry, type Feed, type Source } from './feed.ts'
import type { Outlet, Subscription, Wish } from './outlet.ts'
import type { RealtimePorts } from './ports.ts'
import { openSession } from './session.ts'

/** Whether a text can be a cursor of this channel. */
export function isCursor({ of }: OpenChannel, text: string): boolean {
  if (of.kind === 'session') return false
  return (of.kind === 'events' && of.log ? /^\d{1,15}(\.\d{1,15})?$/ : /^\d{1,15}$/).test(text)
}

/** Where a client wants to go on; undefined: only what is new. */
function positionsOf(after: string | undefined): [events: number | undefined, lines: number | undefined] {
  const [, events, lines] = /^(\d{1,15})(?:\.(\d{1,15}))?$/.exec(after ?? '') ?? []
  return [
    events === undefined ? undefined : Number(events),
    events === undefined ? undefined : Number(lines ?? 0),
  ]
}

const isAmong = (projects: readonly string[] | 'all', id: string) =>
  projects === 'all' || projects.includes(id)
function matches(event: PlatformEvent, filter: EventFilter): boolean {
  if (filter.without?.includes(event.type)) return false
  if (filter.types && !filter.types.includes(event.type)) return false
  const { in_projects } = filter
  if (in_projects && (event.project_id === null || !isAmong(in_projects, event.project_id))) return false
  return (
    PAYLOAD_KEYS.every((key) => filter[key] === undefined || event.payload[key] === filter[key]) &&
    COLUMN_KEYS.every((key) => filter[key] === undefined || event[key] === filter[key])
  )
}
const entryOf = (event: PlatformEvent): Entry => {
  const { seq, type, ...data } = event
  return { position: seq, type, data }
}

function eventSource(ports: RealtimePorts, filter: () => EventFilter): Source {
  return {
    after: (position, limit) => ports.events.after(position, filter(), limit).map(entryOf),
    subscribe: (listener) =>
      ports.events.subscribe((event) => {
        if (matches(event, filter())) listener(entryOf(event))
      }),
  }
}

/** What of all that happens belongs to a channel; another once its listener may hear more or less than before. */
function filterOf({ events }: EventChannel, id: string, { actor }: Wish): () => EventFilter {
  let of = actor()
  let filter = events(id, of)
  return () => {
    if (of === actor()) return filter
    of = actor()
    filter = events(id, of)
    return filter
  }
}

function lineSource(log: ChannelLog, id: string): Source {
  return {
    after: (position, limit) =>
      log.after(id, position, limit).map((line) => ({ position: line.seq, type: 'log', data: line })),
    subscribe: (listener) =>
      log.subscribe(id, (line) => listener({ position: line.seq, type: 'log', data: line })),
  }
}

/** Subscribes to a channel from a cursor; tells `subscribed` first. */
export function createSubscription(
  ports: RealtimePorts,
  channel: OpenChannel,
  wish: Wish,
  outlet: Outlet,
): Subscription {
  const { of, id } = channel
  const { after } = wish
  if (of.kind === 'session') return openSession(channel, of, wish, outlet)
  if (of.kind === 'log') {
    const from = after === undefined ? of.log.latest(id) : Number(after)
    return followOne(channel, lineSource(of.log, id), from, outlet)
  }
  const events = eventSource(ports, filterOf(of, id, wish))
  const [event_position, line_position] = positionsOf(after)
  const events_from = event_position ?? ports.events.latest()
  if (!of.log) return followOne(channel, events, events_from, outlet)
  const at = { events: events_from, lines: line_position ?? of.log.latest(id) }
  const cursor = () => `${at.events}.${at.lines}`
  const deliver = (part: keyof typeof at) => (entry: Entry, position: number) => {
    const before = at[part]
    at[part] = position
    const sent = outlet.send({ type: entry.type, cursor: cursor(), data: entry.data })
    if (!sent) at[part] = before
    return sent
  }
  const feeds = [
    createFeed(events, events_from, deliver('events'), outlet),
    createFeed(lineSource(of.log, id), at.lines, deliver('lines'), outlet),
  ]
  return begin(channel, feeds, cursor, outlet)
}

function followOne(channel: OpenChannel, source: Source, from: number, outlet: Outlet): Subscription {
  const deliver = (entry: Entry, position: number) =>
    outlet.send({ type: entry.type, cursor: String(position), data: entry.data })
  const feed = createFeed(source, from, deliver, outlet)
  return begin(channel, [feed], () => String(feed.position), outlet)
}

function begin(channel: OpenChannel, feeds: Feed[], cursor: () => string, outlet: Outlet): Subscription {
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
