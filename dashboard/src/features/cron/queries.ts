import { type MaybeRefOrGetter, toValue } from 'vue'
import { answerOf, api, type Schemas } from '@/api/client'
import { useRead } from '@/api/queries'

export type CronJob = Schemas['CronJob']
export type CronRun = Schemas['CronRun']

const ABOUT = ['cron', 'cron_job', 'cron_run', 'deployment']

export const useCronJobs = (filter: MaybeRefOrGetter<{ page: number; app_id?: string }>) =>
  useRead(
    ABOUT,
    () => ['cron-jobs', toValue(filter)],
    (signal) => api.GET('/api/cron-jobs', { params: { query: { ...toValue(filter) } }, signal }),
    { keep: true },
  )

/** One job; the API has lists only, so their pages are gone through. */
async function findJob(id: string, signal: AbortSignal): Promise<CronJob | null> {
  for (let page = 1; ; page++) {
    const query = { page, per_page: 100 }
    const { data, pages } = await answerOf(api.GET('/api/cron-jobs', { params: { query }, signal }))
    const found = data.find((one) => one.id === id)
    if (found || page >= pages) return found ?? null
  }
}

export const useCronJob = (id: MaybeRefOrGetter<string>) =>
  useRead(
    ABOUT,
    () => ['cron-job', toValue(id)],
    async (signal) => ({ data: await findJob(toValue(id), signal) }),
  )

export const useCronRuns = (id: MaybeRefOrGetter<string>, page: MaybeRefOrGetter<number>) =>
  useRead(
    ABOUT,
    () => ['cron-runs', toValue(id), toValue(page)],
    (signal) =>
      api.GET('/api/cron-jobs/{id}/runs', {
        params: { path: { id: toValue(id) }, query: { page: toValue(page) } },
        signal,
      }),
    { keep: true },
  )
