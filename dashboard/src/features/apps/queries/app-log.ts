import { type MaybeRefOrGetter, onScopeDispose, ref, toValue, watch } from 'vue'
import { answerOf, api, type Schemas } from '@/api/client'
import { useChannel } from '@/api/follow'
import { appendLines, type LogEntry } from '@/lib/log'

const TAIL = 2000
/** Lines of one moment are drawn together. */
const TOGETHER_MS = 80

/** The log of an app: the newest lines, then each as it comes. */
export function useAppLog(id: MaybeRefOrGetter<string>, type: MaybeRefOrGetter<'runtime' | 'access'>) {
  const lines: LogEntry[] = []
  const version = ref(0)
  const error = ref<Error>()
  const cursor = ref<string>()
  const channel = ref<string>()
  let waiting: LogEntry[] = []
  let number = 0

  const entryOf = (line: Schemas['LogLine']): LogEntry => {
    number += 1
    return {
      key: String(number),
      at: line.at,
      text: line.text,
      source: shorten(line.source),
      stream: line.stream,
    }
  }
  const flush = () => {
    if (waiting.length === 0) return
    appendLines(lines, waiting)
    waiting = []
    version.value += 1
  }
  async function read() {
    const [app_id, kind] = [toValue(id), toValue(type)]
    channel.value = undefined
    error.value = undefined
    try {
      const query = { type: kind, tail: TAIL }
      const { data } = await answerOf(
        api.GET('/api/apps/{id}/logs', { params: { path: { id: app_id }, query } }),
      )
      if (app_id !== toValue(id) || kind !== toValue(type)) return
      waiting = []
      lines.length = 0
      appendLines(lines, data.map(entryOf))
      version.value += 1
      const newest = Math.max(0, ...data.map(({ seq }) => seq ?? 0))
      cursor.value = newest > 0 ? String(newest) : undefined
      channel.value = `apps/${app_id}/logs${kind === 'access' ? '/access' : ''}`
    } catch (fault) {
      error.value = fault as Error
    }
  }
  useChannel(
    channel,
    ({ type: what, data }) => {
      if (what === 'log') {
        const line = data as Schemas['LogLine'] & { instance_id?: string }
        waiting.push(entryOf({ ...line, source: line.source ?? line.instance_id ?? '' }))
      } else if (what === 'gap') {
        number += 1
        const { dropped } = data as { dropped: number | null }
        const at = new Date().toISOString()
        waiting.push({ key: String(number), at, text: '', source: '', stream: 'system', gap: dropped ?? 1 })
      }
    },
    () => cursor.value,
  )
  const timer = setInterval(flush, TOGETHER_MS)
  onScopeDispose(() => clearInterval(timer))
  watch([() => toValue(id), () => toValue(type)], read, { immediate: true })
  return { lines: lines as readonly LogEntry[], version, error, read }
}

/** Ids of instances are long; their end tells them apart. */
const shorten = (source: string) => (source.length > 20 ? source.slice(-8) : source)
