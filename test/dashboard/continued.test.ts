import { VueQueryPlugin } from '@tanstack/vue-query'
import { afterAll, afterEach, expect, it } from 'vitest'
import { createApp, effectScope, nextTick } from 'vue'
import { useContinued } from '@/api/continued'
import { query_client } from '@/api/queries'

let newest = 250
/** A list of the API, newest first; a new one may come at any time. */
const ask = async ({ page, per_page }: { page: number; per_page: number }) => {
  const all = Array.from({ length: newest }, (_, at) => ({ id: `dep_${newest - at}` }))
  const data = all.slice((page - 1) * per_page, page * per_page)
  if (page === 1) newest += 1
  return { data: { data, total: all.length, pages: Math.ceil(all.length / per_page) } }
}
const app = createApp({})
app.use(VueQueryPlugin, { queryClient: query_client })
const scope = effectScope()
const answered = async () => {
  await nextTick()
  while (query_client.isFetching() > 0) await new Promise((next) => setImmediate(next))
  await nextTick()
}
afterEach(() => query_client.clear())
afterAll(() => scope.stop())

it('older ones than the newest hundred can be had, each once, down to the oldest', async () => {
  const list = scope.run(() =>
    app.runWithContext(() => useContinued(['deployment'], () => ['deployments'], ask)),
  )!
  await answered()
  expect([list.rows.value.length, list.has_more.value]).toEqual([100, true])
  list.more()
  await nextTick()
  // What was there stays until the rest has come.
  expect([list.rows.value.length, list.busy.value]).toEqual([100, true])
  await answered()
  list.more()
  await answered()
  const ids = list.rows.value.map(({ id }) => id)
  expect([ids.at(-1), new Set(ids).size === ids.length, list.has_more.value]).toEqual(['dep_1', true, false])
})
