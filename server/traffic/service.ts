import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '#server/kernel/clock'
import type { Events } from '#server/kernel/events'
import { escapeControl, type Log } from '#server/kernel/log'
import { createPace, mapInPieces } from '#server/kernel/pace'
import type { EdgeRequest, Ingress } from '#server/platform/ingress/ingress'
import { createAccessFiles } from './access-files.ts'
import { createMasks, type MaskOptions } from './masks.ts'
import { redactTarget } from './redact-target.ts'
import { createTrafficSamples } from './samples.ts'
import type { LogLine } from '#server/runtime-logs/schema'
import type { AccessLine, AccessRequest } from './schema.ts'

export interface TrafficOptions extends Omit<MaskOptions, 'clock'> {
  clock: Clock
  log: Log
  events: Pick<Events, 'subscribe'>
  ingress: Pick<Ingress, 'followRequests'>
  /** Where access logs are kept, e.g. `<data>/logs/access`. */
  directory: string
  /** Undefined for an app that is gone. */
  projectOf(app_id: string): string | undefined
}
export interface AccessQuery {
  tail: number
  since?: string
  until?: string
  q?: string
}

const FLUSH_MS = 250
/** More lines than this of one app in a second are counted, not listed. */
const MAX_LINES_PER_SECOND = 1_000
/** What all access logs may take on disk. */
const MAX_BYTES = 2 * 1024 * 1024 * 1024
/** Lines of an app's log that are looked at for what the edge tells a second time after a crash. */
const KNOWN_LINES = 5_000
/** So long after a start the edge may tell again what was listed before. */
const CATCH_UP_MS = 30_000

interface Pending {
  lines: AccessLine[]
  seq: number
  second: number
  listed: number
  omitted: number
}
export type AccessListener = (line: LogLine) => void

/** Listens to the edge: keeps each app's access log in bounded files and counts its requests. */
export function createTraffic(options: TrafficOptions) {
  const { clock, log, events, ingress, directory, projectOf } = options
  const appExists = (app_id: string) => projectOf(app_id) !== undefined
  const files = createAccessFiles(directory)
  const samples = createTrafficSamples(() => clock.now())
  const pending = new Map<string, Pending>()
  /** Requests that were listed before this start, by app: the edge may tell of them once more. */
  const known = new Map<string, Set<string>>()
  const listeners = new Map<string, Set<AccessListener>>()
  const untold = new Map<string, AccessLine[]>()
  const masks = createMasks(options)
  const stopping = new AbortController()
  const cursor_path = join(directory, 'cursor.json')
  let cursor = readCursor(cursor_path)
  let written = cursor
  let timer: NodeJS.Timeout | undefined
  let followed_ms = 0
  const isCatchingUp = () => clock.monotonic_ms() - followed_ms < CATCH_UP_MS

  /** Reads what the last process listed just before its end: of a hundred apps thousands of lines. */
  const recall = async (): Promise<void> => {
    const ended_ms = statSync(cursor_path, { throwIfNoEntry: false })?.mtimeMs ?? 0
    const pace = createPace('access')
    for (const app_id of await files.idsSince(ended_ms - CATCH_UP_MS)) {
      const ids = new Set<string>()
      for (const lines of files.backwards(app_id)) {
        for (const { request } of lines) if (request) ids.add(request.id)
        const rest = pace.rest()
        if (rest) await rest
        if (ids.size >= KNOWN_LINES) break
      }
      known.set(app_id, ids)
    }
  }
  const isKnown = ({ app_id, id }: EdgeRequest): boolean => {
    if (known.size > 0 && !isCatchingUp()) known.clear()
    return known.get(app_id)?.has(id) ?? false
  }

  const pendingOf = (app_id: string): Pending => {
    const found = pending.get(app_id)
    if (found) return found
    const created: Pending = { lines: [], seq: files.latest(app_id), second: 0, listed: 0, omitted: 0 }
    pending.set(app_id, created)
    return created
  }
  const tell = async (app_id: string, lines: AccessLine[]): Promise<void> => {
    while (lines.length > 0) {
      const redact = await masks.live(app_id)
      for (const line of lines.splice(0))
        for (const listener of listeners.get(app_id) ?? []) listener(lineOf(cleaned(line, redact)))
    }
    untold.delete(app_id)
  }
  /** Those who listen hear of a line once it is known what it must not show, in the order of the lines. */
  const queue = (app_id: string, line: AccessLine) => {
    const waiting = untold.get(app_id)
    if (waiting) return void waiting.push(line)
    const lines = [line]
    untold.set(app_id, lines)
    tell(app_id, lines).catch((error: unknown) => {
      untold.delete(app_id)
      log.error('Lines of an access log could not be told', { app: app_id, error })
    })
  }
  const put = (app_id: string, log_of: Pending, line: Omit<AccessLine, 'seq'>) => {
    const full = { seq: (log_of.seq += 1), ...line } as AccessLine
    log_of.lines.push(full)
    if (listeners.has(app_id)) queue(app_id, full)
  }
  const tellOmitted = (app_id: string, log_of: Pending) => {
    if (log_of.omitted > 0)
      put(app_id, log_of, {
        at: new Date(log_of.second * 1000).toISOString(),
        omitted: log_of.omitted,
      })
    log_of.omitted = 0
  }
  const list = (request: EdgeRequest) => {
    if (isKnown(request)) return false
    const log_of = pendingOf(request.app_id)
    const second = Math.floor(clock.now() / 1000)
    if (second !== log_of.second) {
      tellOmitted(request.app_id, log_of)
      Object.assign(log_of, { second, listed: 0 })
    }
    if (++log_of.listed > MAX_LINES_PER_SECOND) log_of.omitted++
    else
      put(request.app_id, log_of, {
        at: new Date(request.at_ms).toISOString(),
        request: accessOf(request),
      })
    return true
  }

  /** Writes what waits of one app. */
  const write = (app_id: string, log_of: Pending): void => {
    const second = Math.floor(clock.now() / 1000)
    if (log_of.second < second) tellOmitted(app_id, log_of)
    if (log_of.lines.length === 0) {
      if (log_of.omitted === 0 && second > log_of.second + 60) pending.delete(app_id)
      return
    }
    if (files.append(app_id, log_of.lines)) log_of.lines = []
    // A full disk loses lines rather than memory.
    else if (log_of.lines.length > MAX_LINES_PER_SECOND)
      log_of.lines.splice(0, log_of.lines.length - MAX_LINES_PER_SECOND)
  }
  const writeOf = (app_id: string): void => {
    const log_of = pending.get(app_id)
    if (log_of) write(app_id, log_of)
  }
  const writeCursor = (at: string | undefined): void => {
    if (at === undefined || at === written) return
    try {
      writeFileSync(`${cursor_path}.writing`, at, { mode: 0o600 })
      renameSync(`${cursor_path}.writing`, cursor_path)
      written = at
    } catch (error) {
      log.debug('The place in the log of the edge cannot be written', { error })
    }
  }
  /** Lines first, then the place in the edge's log: after a crash some come twice, and their ids tell. */
  function flush(): void {
    for (const [app_id, log_of] of pending) write(app_id, log_of)
    writeCursor(cursor)
  }
  /** The same, app by app, with others served in between: lines of each may be megabytes. */
  async function flushInPieces(): Promise<void> {
    const at = cursor
    const pace = createPace('access')
    for (const app_id of [...pending.keys()]) {
      writeOf(app_id)
      const rest = pace.rest()
      if (rest) await rest
    }
    if (!stopping.signal.aborted) writeCursor(at)
  }
  function flushSoon(): void {
    timer = setTimeout(
      () => void flushInPieces().finally(() => !stopping.signal.aborted && flushSoon()),
      FLUSH_MS,
    ).unref()
  }

  const follow = (): void => {
    followed_ms = clock.monotonic_ms()
    ingress.followRequests({
      ...(cursor === undefined ? {} : { cursor }),
      signal: stopping.signal,
      onRequests(requests, at) {
        const existing = new Map<string, boolean>()
        for (const request of requests) {
          const exists = existing.get(request.app_id) ?? appExists(request.app_id)
          existing.set(request.app_id, exists)
          if (exists && list(request)) samples.count(request)
        }
        cursor = at
      },
    })
  }

  /** Forgets an app that is gone. */
  const remove = (app_id: string): void => {
    pending.delete(app_id)
    known.delete(app_id)
    samples.forget(app_id)
    masks.forget(app_id)
    files.remove(app_id)
  }
  events.subscribe((event) => {
    if (event.type === 'app.deleted' && event.app_id) remove(event.app_id)
  })

  return {
    samples,
    /** Begins to listen, where it stopped before; resolves once it does. */
    async start(): Promise<void> {
      for (const app_id of files.ids()) if (!appExists(app_id)) files.remove(app_id)
      await recall().catch((error: unknown) =>
        log.warn('Requests from before the start may be listed twice', { error }),
      )
      if (stopping.signal.aborted) return
      follow()
      flushSoon()
    },
    stop() {
      stopping.abort()
      clearTimeout(timer)
      flush()
    },
    flush,
    /** Newest lines of an app's access log in the shape of its other logs, oldest first. */
    async lines(app_id: string, query: AccessQuery): Promise<LogLine[]> {
      writeOf(app_id)
      const redact = await masks.soon(app_id)
      const desired = query.q?.toLowerCase()
      const lines = await files.newest(
        app_id,
        query.tail,
        (line) =>
          (!query.since || line.at >= query.since) &&
          (!query.until || line.at < query.until) &&
          // In what is shown, so that a search cannot guess at secrets.
          (!desired || textOf(cleaned(line, redact)).toLowerCase().includes(desired)),
        // Lines stand in the order of their end, so that an older one may follow; nothing takes longer than
        // the time limits of the edge.
        (line) => query.since !== undefined && Date.parse(line.at) < Date.parse(query.since) - LONGEST_MS,
      )
      return mapInPieces(app_id, lines, (line) => lineOf(cleaned(line, redact)))
    },
    /** Lines after a number, oldest first, as many as one piece of work may be about; none after the newest. */
    after(app_id: string, seq: number, limit: number): LogLine[] {
      writeOf(app_id)
      return files.page(app_id, seq, limit).map((line) => lineOf(cleaned(line, masks.now(app_id))))
    },
    latest: (app_id: string): number => pending.get(app_id)?.seq ?? files.latest(app_id),
    /** Hears lines as they come; one may be heard before it is on disk. */
    subscribe(app_id: string, listener: AccessListener): () => void {
      const set = listeners.get(app_id) ?? new Set()
      listeners.set(app_id, set.add(listener))
      return () => {
        set.delete(listener)
        if (set.size === 0) listeners.delete(app_id)
      }
    },
    /** Keeps all access logs together within their bound: what is above goes of the project that has most. */
    prune: (): Promise<number> => files.shrink(MAX_BYTES, (id) => projectOf(id) ?? ''),
  }
}
export type Traffic = ReturnType<typeof createTraffic>

const LONGEST_MS = 2 * 3_600_000

function readCursor(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function accessOf({ app_id: _app, at_ms: _at, target, ...rest }: EdgeRequest): AccessRequest {
  return { ...rest, path: redactTarget(target) }
}

/** A line without secrets of its app: the path of a hook is often one, and clients choose what they say. */
const cleaned = (line: AccessLine, redact: (text: string) => string): AccessLine =>
  line.request
    ? {
        ...line,
        request: {
          ...line.request,
          path: redact(line.request.path),
          user_agent: redact(line.request.user_agent),
        },
      }
    : line

function levelOf({ request }: AccessLine): LogLine['level'] {
  if (!request || request.status < 400) return 'info'
  return request.status >= 500 ? 'error' : 'warn'
}
/** A line in the shape of all logs. */
const lineOf = (line: AccessLine): LogLine => ({
  ...line,
  stream: line.request ? 'access' : 'system',
  level: levelOf(line),
  source: line.request?.host ?? 'edge',
  text: textOf(line),
})

/** A line as one would read it. */
export function textOf({ request, omitted }: AccessLine): string {
  if (!request) return `${omitted} more requests of this second are counted, not listed.`
  const { client, method, host, path, version, status, bytes_out, total_ms, user_agent } = request
  return escapeControl(
    `${client} ${method} ${host}${path} ${version} ${status} ${bytes_out} B ${total_ms} ms ${JSON.stringify(user_agent)}`,
  )
}
