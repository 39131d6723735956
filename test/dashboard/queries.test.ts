import { onlineManager, VueQueryPlugin } from '@tanstack/vue-query'
import { afterEach, expect, it } from 'vitest'
import { createApp, effectScope } from 'vue'
import { deleteAndLeave, query_client, refresh, useRead } from '@/api/queries'

const app = createApp({})
app.use(VueQueryPlugin, { queryClient: query_client })
const scope = effectScope()
const read = (name: string) =>
  scope.run(() =>
    app.runWithContext(() =>
      useRead(
        ['app'],
        () => [name],
        async () => ({ data: name }),
      ),
    ),
  )!
const answered = async () => {
  while (query_client.isFetching() > 0) await new Promise((next) => setImmediate(next))
}
afterEach(() => {
  onlineManager.setOnline(true)
  query_client.clear()
})

it('a server on this machine is asked, also while the browser knows of no network', async () => {
  onlineManager.setOnline(false)
  const { data } = read('apps')
  await answered()
  expect(data.value).toBe('apps')
})

it('what is deleted on a page of its own is not asked for again before the page is left', async () => {
  let asked = 0
  const page = effectScope()
  page.run(() =>
    app.runWithContext(() =>
      useRead(
        ['app'],
        () => ['instances', { of: 'app_1' }],
        async () => ({ data: (asked += 1) }),
      ),
    ),
  )
  await answered()
  const heard = () => refresh(['app'])
  await expect(deleteAndLeave('app_1', () => Promise.reject(new Error('Not now')), heard)).rejects.toThrow(
    'Not now',
  )
  await answered()
  expect(asked).toBe(2)
  const left = async () => {
    await heard()
    page.stop()
  }
  await deleteAndLeave('app_1', heard, left)
  await heard()
  expect(asked).toBe(2)
  expect(query_client.getQueryCache().getAll()).toEqual([])
})
