import { afterEach, beforeEach, expect, it } from 'vitest'
import { createApp, nextTick, ref } from 'vue'
import { VueQueryPlugin } from '@tanstack/vue-query'
import { ApiFault } from '@/api/fault'
import { useDialogForm } from '@/api/form'
import { query_client } from '@/api/queries'

/** A dialog over something that is called `name`, whose server answers as the test says. */
function dialog(name = ref('shop')) {
  const open = ref(false)
  const sent: string[] = []
  let refusal: ApiFault | undefined
  const send = async ({ name: typed }: { name: string }) => {
    sent.push(typed)
    if (refusal) throw refusal
    return { data: { name: typed } }
  }
  const app = createApp({})
  app.use(VueQueryPlugin, { queryClient: query_client })
  const parts = app.runWithContext(() =>
    useDialogForm(open, () => ({ name: name.value }), send, { about: ['app'], done: 'Saved.' }),
  )
  return { ...parts, open, sent, name, refuse: (fault?: ApiFault) => (refusal = fault) }
}
let shown: ReturnType<typeof dialog>
beforeEach(() => {
  shown = dialog()
})
afterEach(() => query_client.clear())
const openAgain = async () => {
  shown.open.value = false
  await nextTick()
  shown.open.value = true
  await nextTick()
}

it('begins anew with each opening: what was typed before and not saved is gone', async () => {
  await openAgain()
  shown.form.value.name = 'typed'
  shown.name.value = 'renamed'
  await openAgain()
  expect(shown.form.value).toEqual({ name: 'renamed' })
})
it('sends what the fields hold, and closes', async () => {
  await openAgain()
  shown.form.value.name = 'store'
  await shown.save.run(undefined)
  expect([shown.sent, shown.open.value]).toEqual([['store'], false])
})
it('stays open as it is after a refusal, which the next opening shows no more', async () => {
  await openAgain()
  shown.form.value.name = 'taken'
  const details = [{ path: 'name', message: 'is taken.' }]
  shown.refuse(new ApiFault(422, { error: { code: 'VALIDATION_FAILED', message: 'No.', details } }))
  await shown.save.run(undefined)
  expect([shown.open.value, shown.form.value.name, shown.wrong.value]).toEqual([
    true,
    'taken',
    { name: 'Is taken.' },
  ])
  await openAgain()
  expect([shown.wrong.value, shown.save.error]).toEqual([{}, undefined])
})
