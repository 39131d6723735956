import { type MaybeRefOrGetter, toValue } from 'vue'
import { api, type Schemas } from '@/api/client'
import { findById } from '@/api/find'
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

export const useCronJob = (id: MaybeRefOrGetter<string>) =>
  useRead(
    ABOUT,
    () => ['cron-job', toValue(id)],
    async (signal) => ({
      data: await findById(toValue(id), (query) => api.GET('/api/cron-jobs', { params: { query }, signal })),
    }),
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
