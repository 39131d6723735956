import { computed, type Ref, ref, watch } from 'vue'
import { type About, useAction } from './queries.ts'

/**
 * A form in a dialog: filled anew whenever it opens, without what was refused the time before, and closed once it
 * is saved.
 * @param fill what the fields hold at first: of what is edited, or of something new.
 * @param send what to call with them.
 */
export function useDialogForm<Form extends object, Result>(
  open: Ref<boolean>,
  fill: () => Form,
  send: (form: Form) => Promise<{ data?: Result }>,
  options: { about: About; done: string | ((result: Result) => string) },
) {
  const form = ref(fill()) as Ref<Form>
  const save = useAction((_: undefined) => send(form.value), { ...options, closes: open })
  watch(open, (is_open) => {
    if (!is_open) return
    form.value = fill()
    save.clear()
  })
  return { form, save, wrong: computed(() => save.fields) }
}
