import { onlineManager, VueQueryPlugin } from '@tanstack/vue-query'
import { afterEach, expect, it } from 'vitest'
import { createApp, effectScope } from 'vue'
import { query_client, useRead } from '@/api/queries'

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
