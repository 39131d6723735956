import { VueQueryPlugin } from '@tanstack/vue-query'
import { afterAll, afterEach, expect, it } from 'vitest'
import { createApp, effectScope, nextTick, ref } from 'vue'
import { useChoices } from '@/api/choices'
import { wholeList } from '@/api/every-page'
import { query_client } from '@/api/queries'

const NAMES = Array.from({ length: 250 }, (_, at) => `volume-${at}`)
/** A list of the API. */
const ask = async ({ page = 1, per_page, q = '' }: { page?: number; per_page: number; q?: string }) => {
  const found = NAMES.filter((name) => name.includes(q))
  const data = found.slice((page - 1) * per_page, page * per_page)
  return { data: { data, total: found.length, pages: Math.ceil(found.length / per_page) } }
}
const app = createApp({})
app.use(VueQueryPlugin, { queryClient: query_client })
const scope = effectScope()
const choices = (name = 'volumes', options: Parameters<typeof useChoices>[3] = {}) =>
  scope.run(() => app.runWithContext(() => useChoices(['volume'], () => [name], ask, options)))!
afterAll(() => scope.stop())
const answered = async () => {
  while (query_client.isFetching() > 0) await new Promise((next) => setImmediate(next))
  await nextTick()
}
afterEach(() => query_client.clear())

it('of a list longer than one answer, a part of the name finds what the first answer lacks', async () => {
  const { q, rows, is_long } = choices()
  await answered()
  expect([rows.value.length, rows.value.includes('volume-249'), is_long.value]).toEqual([100, false, true])
  q.value = '249'
  await nextTick()
  await answered()
  // The field that searches stays, though what it found fits into one answer.
  expect([rows.value, is_long.value]).toEqual([['volume-249'], true])
})
it('a search that finds nothing does not say that there is nothing', async () => {
  const { q, is_empty } = choices()
  q.value = 'other'
  await nextTick()
  await answered()
  expect(is_empty.value).toBe(false)
})
it('one text searches several lists at once', async () => {
  const q = ref('')
  const lists = [choices('volumes', { q }), choices('copies', { q })]
  q.value = '249'
  await nextTick()
  await answered()
  expect(lists.map(({ rows }) => rows.value)).toEqual([['volume-249'], ['volume-249']])
})
it('a list that cannot be searched is read whole', async () => {
  expect((await wholeList(ask)).data.data).toEqual(NAMES)
})
