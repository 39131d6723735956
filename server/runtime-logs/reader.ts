import { setImmediate as pause } from 'node:timers/promises'
import { inMilliseconds } from '#server/kernel/clock'
import type { LogSegments } from '#server/kernel/log-segments'
import { LEVELS } from '#server/kernel/log-level'
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
  const shown = (line: RuntimeLine): RuntimeLine => ({ ...line, text: view.redact(line.text) })
  const found: RuntimeLine[] = []
  if (query.after !== undefined) {
    for (let at = query.after; found.length < query.tail; await pause()) {
      const page = segments.after(id, at, PAGE)
      for (const line of page.map(shown)) if (matches(line) && found.length < query.tail) found.push(line)
      if (page.length < PAGE) break
      at = page.at(-1)!.seq
    }
    return found.map(shownLine)
  }
  for (const lines of segments.backwards(id)) {
    for (let index = lines.length - 1; index >= 0 && found.length < query.tail; index--) {
      const line = lines[index]!
      if (query.before !== undefined && line.seq >= query.before) continue
      const clean = shown(line)
      if (matches(clean)) found.push(clean)
    }
    if (found.length >= query.tail) break
    await pause()
  }
  if (found.length > PAGE) await pause()
  // Instances print at the same time, and their lines arrive in any order.
  return found.sort(byTime).map(shownLine)
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
