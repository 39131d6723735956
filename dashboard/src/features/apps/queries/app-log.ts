import { type MaybeRefOrGetter, ref, toValue, watch } from 'vue'
import { answerOf, api, type Schemas } from '@/api/client'
import { useChannel } from '@/api/follow'
import { GAP } from '@/api/live'
import { useGathered } from '@/lib/gathered'
import { appendLines, asText, LEVELS, type LogEntry } from '@/lib/log'
import { readRange } from '../log-range.ts'

/** Lines of one answer. */
const PAGE = 2000

export type LogType = 'runtime' | 'access'
/** What is asked for; empty texts ask for everything. */
export interface LogFilter {
  type: LogType
  level: string
  range: string
  q: string
}
type Line = Schemas['LogLine']

/** What the API is asked for. Requests have no level: theirs is known by their status alone. */
function queryOf({ type, level, range, q }: LogFilter) {
  const least = LEVELS.find((one) => one === level)
  return {
    type,
    ...(least && type === 'runtime' ? { level: least } : {}),
    ...readRange(range, Date.now()),
    ...(q ? { q } : {}),
  }
}

/**
 * The log of an app: the newest lines that fit, then each as it comes.
 * @param line number of a line that has to be among them.
 */
export function useAppLog(id: MaybeRefOrGetter<string>, filter: () => LogFilter, line = '') {
  const lines: LogEntry[] = []
  const version = ref(0)
  const error = ref<Error>()
  const busy = ref(false)
  const has_older = ref(false)
  const cursor = ref<string>()
  const channel = ref<string>()
  let waiting: LogEntry[] = []
  let sought = /^\d+$/.test(line) ? Number(line) : undefined

  const entryOf = (one: Line): LogEntry => {
    const { seq, at, text, source, stream, level } = one
    return { key: String(seq), at, text, source: shorten(source), stream, level }
  }
  const soon = useGathered(() => {
    if (waiting.length === 0) return
    appendLines(lines, waiting)
    waiting = []
    version.value += 1
  })
  const add = (entry: LogEntry) => {
    waiting.push(entry)
    soon()
  }
  const ask = async (more: { before?: number; after?: number } = {}): Promise<Line[]> => {
    const query = { ...queryOf(filter()), ...more, tail: PAGE }
    const path = { id: toValue(id) }
    return (await answerOf(api.GET('/api/apps/{id}/logs', { params: { path, query } }))).data
  }
  /** The newest lines; the other lines around the one that the address points to, when they are older. */
  async function newest(): Promise<Line[]> {
    const found = await ask()
    const wanted = sought
    sought = undefined
    if (wanted === undefined || (found[0]?.seq ?? 0) <= wanted) return found
    const before = await ask({ before: wanted + 1 })
    return [...before, ...(await ask({ after: wanted }))]
  }
  async function read() {
    const asked = JSON.stringify([toValue(id), filter()])
    channel.value = undefined
    error.value = undefined
    try {
      const found = await newest()
      if (asked !== JSON.stringify([toValue(id), filter()])) return
      waiting = []
      lines.length = 0
      appendLines(lines, found.map(entryOf))
      version.value += 1
      const { type, range } = filter()
      has_older.value = type === 'runtime' && found.length >= PAGE
      const last = Math.max(0, ...found.map(({ seq }) => seq))
      cursor.value = last > 0 ? String(last) : undefined
      // What has an end gets no new lines.
      if (readRange(range, Date.now()).until === undefined)
        channel.value = `apps/${toValue(id)}/logs${type === 'access' ? '/access' : ''}`
    } catch (fault) {
      error.value = fault as Error
    }
  }
  async function readOlder() {
    const oldest = lines.find(({ key }) => /^\d+$/.test(key))
    if (!oldest || busy.value) return
    busy.value = true
    try {
      const found = await ask({ before: Number(oldest.key) })
      lines.unshift(...found.map(entryOf))
      has_older.value = found.length >= PAGE
      version.value += 1
    } catch (fault) {
      error.value = fault as Error
    } finally {
      busy.value = false
    }
  }
  /** All lines that are kept and fit what is asked for, as pieces of a text from the oldest on. */
  async function readAll(): Promise<string[]> {
    const pieces: string[] = []
    let before: number | undefined
    for (;;) {
      const found = await ask(before === undefined ? {} : { before })
      if (found.length > 0) pieces.unshift(`${asText(found.map(entryOf))}\n`)
      // Requests are not read page by page.
      if (found.length < PAGE || filter().type === 'access') return pieces
      before = found[0]!.seq
    }
  }
  useChannel(
    channel,
    ({ type: what, data }) => {
      if (what === GAP) add(gapOf(lines.length + waiting.length))
      if (what !== 'log') return
      const one = data as Line
      const { q } = filter()
      if (q && !one.text.toLowerCase().includes(q.toLowerCase())) return
      add(entryOf(one))
    },
    () => cursor.value,
  )
  watch([() => toValue(id), () => JSON.stringify(filter())], read, { immediate: true })
  return { lines: lines as readonly LogEntry[], version, error, busy, has_older, read, readAll, readOlder }
}

/** Ids of instances are long; their end tells them apart. */
const shorten = (source: string) => (source.length > 20 ? source.slice(-8) : source)

/** Stands where lines are missing: they came while there was no connection, and are no longer kept. */
const gapOf = (place: number): LogEntry => ({
  key: `gap-${place}`,
  at: new Date().toISOString(),
  text: 'Lines may be missing here: they came while there was no connection.',
  source: 'Portreeve',
  stream: 'system',
})
