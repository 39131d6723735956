import { inMilliseconds } from '#server/kernel/clock'
import type { LogSegments } from '#server/kernel/log-segments'
import { LEVELS } from '#server/kernel/log-level'
import { createPace, mapInPieces } from '#server/kernel/pace'
import type { LineQuery, LogLine, RuntimeLine } from './schema.ts'

/** Lines that are read at once when a log is read forwards. */
const PAGE = 1_000

/** Whether a line is asked for; its text has no secrets any more, so that a search cannot guess at them. */
function createMatch(query: LineQuery, oldest_at: string) {
  const desired = query.q?.toLowerCase()
  const least = query.level === undefined ? 0 : LEVELS.indexOf(query.level)
  const since = query.since === undefined ? undefined : Date.parse(query.since)
  const until = query.until === undefined ? undefined : Date.parse(query.until)
  return (line: RuntimeLine): boolean => {
    const time = since === undefined && until === undefined ? 0 : Date.parse(line.at)
    return (
      line.at >= oldest_at &&
      (since === undefined || time >= since) &&
      (until === undefined || time < until) &&
      LEVELS.indexOf(line.level) >= least &&
      (query.instance === undefined || line.instance_id === query.instance) &&
      (query.process === undefined || line.process === query.process) &&
      (query.deployment === undefined || line.deployment_id === query.deployment) &&
      (desired === undefined || line.text.toLowerCase().includes(desired))
    )
  }
}

/**
 * Reads what is asked for, oldest first: the newest lines, those before a line, or those after one. Others are
 * served in between, since a search may look through all that is kept.
 */
export async function readLines(
  segments: LogSegments<RuntimeLine>,
  id: string,
  query: LineQuery,
  view: { redact(text: string): string; oldest_at: string },
): Promise<LogLine[]> {
  const matches = createMatch(query, view.oldest_at)
  const found: RuntimeLine[] = []
  const pace = createPace(id)
  /** To look for secrets in a line takes more than all the rest. */
  const take = (line: RuntimeLine): Promise<void> | undefined => {
    const clean = { ...line, text: view.redact(line.text) }
    if (matches(clean)) found.push(clean)
    return pace.rest()
  }
  for (const lines of query.after === undefined
    ? segments.backwards(id, query.before)
    : forwards(segments, id, query.after)) {
    for (const line of lines) {
      if (found.length >= query.tail) break
      if (query.after === undefined && query.before !== undefined && line.seq >= query.before) continue
      const rest = take(line)
      if (rest) await rest
    }
    if (found.length >= query.tail) break
  }
  // Instances print at the same time, and their lines arrive in any order.
  if (query.after === undefined) found.sort(byTime)
  return mapInPieces(id, found, shownLine)
}

/** What is kept of a log from a line on. */
function* forwards(
  segments: LogSegments<RuntimeLine>,
  id: string,
  after: number,
): Generator<readonly RuntimeLine[]> {
  for (let at = after; ; ) {
    const page = segments.page(id, at, PAGE)
    if (page.length === 0) return
    yield page
    at = page.at(-1)!.seq
  }
}

function byTime(a: RuntimeLine, b: RuntimeLine): number {
  if (a.at === b.at) return a.seq - b.seq
  return a.at < b.at ? -1 : 1
}

/** A line as everybody gets it. */
export const shownLine = (line: RuntimeLine): LogLine => ({
  ...line,
  at: inMilliseconds(line.at),
  source: line.instance_id,
})
