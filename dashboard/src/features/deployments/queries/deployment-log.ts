import { type MaybeRefOrGetter, ref, toValue, watch } from 'vue'
import { answerOf, api, type Schemas } from '@/api/client'
import { useChannel } from '@/api/follow'
import { useGathered } from '@/lib/gathered'
import { appendLines, type LogEntry } from '@/lib/log'
import { nextTask } from '@/lib/tasks'

/** Lines of one answer, which is read in one piece; a longer log comes in several. */
const PAGE = 4000
/** Lines that are taken in without a break. */
const PART = 2000
type Line = Schemas['LogLine']

async function readAfter(id: string, after: number): Promise<Line[]> {
  const query = { after, tail: PAGE }
  const { data } = await answerOf(api.GET('/api/deployments/{id}/logs', { params: { path: { id }, query } }))
  return data
}

/** The log of a deployment from its first line, and each further one as it comes. */
export function useDeploymentLog(id: MaybeRefOrGetter<string>) {
  const lines: LogEntry[] = []
  const version = ref(0)
  const error = ref<Error>()
  const channel = ref<string>()
  let last = 0
  let waiting: LogEntry[] = []

  const take = (line: Line) => {
    if (line.seq <= last) return
    last = line.seq
    waiting.push({
      key: String(line.seq),
      at: line.at,
      text: line.text,
      source: line.source,
      stream: line.stream,
    })
  }
  const flush = () => {
    if (waiting.length === 0) return
    appendLines(lines, waiting)
    waiting = []
    version.value += 1
  }
  const soon = useGathered(flush)
  async function read() {
    const deployment = toValue(id)
    channel.value = undefined
    error.value = undefined
    try {
      last = 0
      waiting = []
      lines.length = 0
      version.value += 1
      for (let more = true; more; ) {
        const page = await readAfter(deployment, last)
        if (deployment !== toValue(id)) return
        // Reading the answer was a task of its own; so is each part of what is made of it.
        for (let at = 0; at < page.length; at += PART) {
          await nextTask()
          if (deployment !== toValue(id)) return
          page.slice(at, at + PART).forEach(take)
        }
        flush()
        more = page.length === PAGE
      }
      channel.value = `deployments/${deployment}`
    } catch (fault) {
      error.value = fault as Error
    }
  }
  // Lines that came between the answer and the subscription are asked for by their number.
  useChannel(
    channel,
    ({ type, data }) => {
      if (type !== 'log') return
      take(data as Line)
      soon()
    },
    () => `999999999999999.${last}`,
  )
  watch(() => toValue(id), read, { immediate: true })
  return { lines: lines as readonly LogEntry[], version, error, read }
}
