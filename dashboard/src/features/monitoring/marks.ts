import { computed } from 'vue'
import { answerOf, api, type Schemas } from '@/api/client'
import { useRead } from '@/api/queries'
import type { Mark } from '@/lib/chart'
import { useAppNames } from '@/shell/app-names'
import type { Range } from './queries.ts'

type Deployment = Schemas['DeploymentSummary']
const PER_PAGE = 100
/** More marks than these are no longer told apart. */
const MOST_PAGES = 4

/** Deployments from a moment on, newest first. */
async function readSince(from: number, app_id: string | undefined, signal: AbortSignal) {
  const found: Deployment[] = []
  for (let page = 1; page <= MOST_PAGES; page += 1) {
    const query = { page, per_page: PER_PAGE, ...(app_id ? { app_id } : {}) }
    const { data } = await answerOf(api.GET('/api/deployments', { params: { query }, signal }))
    found.push(...data)
    const last = data.at(-1)
    if (data.length < PER_PAGE || !last || Date.parse(last.created_at) < from) break
  }
  return found
}

/** Deployments that went live or failed, as marks of charts; of one app, or with the names of all of them. */
export function useDeploymentMarks(range: Range, app_id?: () => string) {
  const read = useRead(
    ['deployment'],
    () => ['deployment-marks', app_id?.(), range.chosen.value?.from ?? `${range.hours.value} h`],
    async (signal) => ({ data: await readSince(range.span.value.from, app_id?.(), signal) }),
    { keep: true },
  )
  const names = useAppNames(() => (app_id ? [] : read.data.value?.map((one) => one.app_id)))
  return computed((): Mark[] =>
    (read.data.value ?? []).flatMap(({ id, app_id: of, number, status, live_at, finished_at }) => {
      const is_bad = status === 'failed'
      const at = live_at ?? (is_bad ? finished_at : null)
      if (!at) return []
      const label = app_id ? `#${number}` : `${names.value.get(of) ?? ''} #${number}`.trim()
      return [{ at: Date.parse(at), label, to: `/deployments/${id}`, is_bad }]
    }),
  )
}
